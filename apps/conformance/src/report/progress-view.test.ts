import { millis } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { ProgressEvent } from '../model/case.ts';
import type { CaseResult } from '../model/report-file.ts';
import { aCase, aFailedCheck, aSkip } from '../testing/report-builders.ts';
import { ProgressView } from './progress-view.ts';

const run = { proxy: 'nftables', cell: 'dual', round: 1 } as const;
const started = (...caseIds: readonly string[]): ProgressEvent => ({ kind: 'runStarted', run, caseIds });
const begins = (id: string, lane = 'lab1'): ProgressEvent => ({ kind: 'caseStarted', run, lane, id });
const ends = (result: CaseResult, lane = 'lab1'): ProgressEvent => ({ kind: 'caseEnded', run, lane, result });
const failed = aCase({ id: 'scenario/b/ipv4', checks: [aFailedCheck()] });

/** A view with a clock, and what it has written. */
function watched(options: { readonly width?: number; readonly isVerbose?: boolean } = {}) {
  const clock = new ManualClock();
  const written: string[] = [];
  const view = new ProgressView({
    write: (text) => void written.push(text),
    width: () => options.width,
    isVerbose: options.isVerbose === true,
    colours: false,
    clock,
  });
  return { clock, view, text: () => written.join(''), screen: () => screenOf(written.join('')) };
}

/** Screen of a terminal after this output: cursor up and clear below are the only controls. */
function screenOf(text: string): string {
  const lines = [''];
  for (const [part] of text
    .replaceAll('\u001B[J', '')
    .replaceAll('\u001B[', '\u0000')
    .matchAll(/\0\d+A|\n|[^\0\n]+/g)) {
    const up = /^\0(\d+)A/.exec(part);
    if (up !== null) lines.splice(lines.length - 1 - Number(up[1]), lines.length, '');
    else if (part === '\n') lines.push('');
    else lines.push((lines.pop() ?? '') + part);
  }
  return lines.join('\n');
}

test('without a terminal: a failed case at once with its checks, and now and then how far it is', async () => {
  const { clock, view, text } = watched();
  view.onEvent(started('scenario/a/ipv4', 'scenario/b/ipv4', 'scenario/c/ipv4'));
  view.onEvent(begins('scenario/a/ipv4'));
  await clock.advance(20_000);
  view.onEvent(ends(aCase({ id: 'scenario/a/ipv4', duration: millis(20_000) })));
  view.onEvent(begins('scenario/b/ipv4'));
  await clock.advance(20_000);
  view.onEvent(ends({ ...failed, duration: millis(20_000) }));
  await view[Symbol.asyncDispose]();
  expect(text()).toBe(`nftables dual: 3 cases
FAILED scenario/b/ipv4  nftables dual, 20 s
  A Local service is reached where it has an endpoint
  why: API: externalTrafficPolicy "Local"
  check outside/tcp: outside to 198.51.100.7:80/TCP
    expected  forward to 10.244.1.5
    observed  drop
    because   4 attempts of 4 timed out
    path by Switchyard's table
      frontend 198.51.100.7:80/TCP of default/web
      forward to 10.244.1.5:8080
    path in the kernel
      prerouting: jump services
      services: verdict drop
2 of 3 cases, 1 failed, 40 s, about 20 s left
`);
});

test('cases of rounds that have not started are counted, in what there is and in the time left', async () => {
  const { clock, view, text } = watched();
  const planned = [1, 2, 3].map((round) => ({ run: { ...run, round }, caseIds: ['scenario/a/ipv4'] }));
  view.onEvent({ kind: 'planned', runs: planned });
  view.onEvent(started('scenario/a/ipv4'));
  view.onEvent(begins('scenario/a/ipv4'));
  await clock.advance(40_000);
  view.onEvent(ends(aCase({ id: 'scenario/a/ipv4', duration: millis(40_000) })));
  await view[Symbol.asyncDispose]();
  expect(text()).toBe('nftables dual: 1 case\n1 of 3 cases, 0 failed, 40 s, about 1 min 20 s left\n');
});

test('on a terminal: one block that is drawn anew below what stays', async () => {
  const { clock, view, screen } = watched({ width: 100 });
  view.onEvent(started('scenario/a/ipv4', 'scenario/b/ipv4'));
  view.onEvent({ kind: 'lane', lane: 'lab1', text: 'building' });
  await clock.advance(5100);
  view.onEvent(begins('scenario/a/ipv4'));
  expect(screen()).toBe(`nftables dual: 2 cases
  lab1: scenario/a/ipv4 (nftables dual)
0 of 2 cases, 0 failed, 5.1 s
`);
  await clock.advance(5000);
  view.onEvent(ends(aCase({ id: 'scenario/a/ipv4', duration: millis(5000) })));
  view.onEvent(begins('scenario/b/ipv4', 'lab2'));
  await clock.advance(1000);
  view.onEvent(ends(failed, 'lab2'));
  expect(screen()).toBe(`nftables dual: 2 cases
FAILED scenario/b/ipv4  nftables dual, 0.4 s
  outside to 198.51.100.7:80/TCP: expected forward to 10.244.1.5, observed drop
  lab1: scenario/a/ipv4 (nftables dual)
  lab2: scenario/b/ipv4 (nftables dual)
2 of 2 cases, 1 failed, 11 s
`);
  view.onEvent({ kind: 'runEnded', run });
  await view[Symbol.asyncDispose]();
  expect(screen()).toBe(`nftables dual: 2 cases
FAILED scenario/b/ipv4  nftables dual, 0.4 s
  outside to 198.51.100.7:80/TCP: expected forward to 10.244.1.5, observed drop
nftables dual: 1 passed, 1 failed, 0 skipped, 0 errors
`);
});

test('the times of the block advance without events', async () => {
  const { clock, view, screen } = watched({ width: 100 });
  view.onEvent(started('scenario/a/ipv4'));
  await clock.advance(42_000);
  expect(screen()).toContain('0 of 1 cases, 0 failed, 42 s');
  await view[Symbol.asyncDispose]();
  expect(clock.sleeping).toBe(0);
});

test('no line of the block is longer than the terminal is wide', async () => {
  const { view, screen } = watched({ width: 24 });
  view.onEvent(started('scenario/a/ipv4'));
  view.onEvent({ kind: 'lane', lane: 'lab1', text: `a long\ntext ${'x'.repeat(200)}` });
  view.onEvent(ends(aSkip('scenario/a/ipv4', 'why')));
  await Promise.resolve();
  const block = screen().trimEnd().split('\n').slice(-2);
  expect(block.every((line) => line.length < 24)).toBe(true);
  await view[Symbol.asyncDispose]();
});

test('verbose: each case is a line', async () => {
  const { view, text } = watched({ isVerbose: true });
  view.onEvent({ kind: 'lane', lane: 'lab1', text: 'building' });
  view.onEvent({ kind: 'caseProgress', run, lane: 'lab1', id: 'scenario/a/ipv4', text: 'killed the proxy' });
  view.onEvent(ends(aCase({ id: 'scenario/a/ipv4' })));
  view.onEvent(ends(aSkip('scenario/b/ipv4', 'the environment has no SCTP')));
  await view[Symbol.asyncDispose]();
  expect(text()).toBe(`lab1: building
scenario/a/ipv4: killed the proxy
passed scenario/a/ipv4  nftables dual, 0.4 s
skip   scenario/b/ipv4  the environment has no SCTP
`);
});
