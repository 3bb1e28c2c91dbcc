import { type IpFamily, millis, systemClock } from '@switchyard/core';
import { situation } from '@switchyard/core/testing';
import { createLab, type Lab, type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type NftablesHost, nftablesBackend } from '../../src/index.ts';
import { printTable } from '../../src/testing/print-table.ts';
import { skeleton } from '../../src/render/skeleton.ts';
import { hostIn, signal } from './support.ts';

let lab: Lab;
let node: LabNode;

beforeAll(async () => {
  lab = await createLab({ name: 'heartb', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal);
  [node] = lab.nodes as [LabNode];
});

afterAll(() => lab[Symbol.asyncDispose]());

const table = (ipFamily: IpFamily) => situation({ shop: {} }, { ipFamily });
const open = (host: NftablesHost, family: IpFamily = 'IPv4') => nftablesBackend.open(host, family, signal);
const full = { kind: 'full' } as const;
const pause = (milliseconds: number): Promise<void> => systemClock.sleep(millis(milliseconds), signal);

async function nft(...args: readonly string[]): Promise<string> {
  const result = await node.run('nft', args);
  expect(result.exitCode, result.stderr).toBe(0);
  return result.stdout;
}

describe('the heartbeat', () => {
  const host = (): NftablesHost => hostIn(node);

  test('the age counts from the last heartbeat, by the clock of the kernel, and a process with no memory reads it', async () => {
    await nft('flush', 'ruleset');
    await using first = await open(host());
    expect(await first.observers.age?.read(signal)).toBeUndefined();
    await first.apply({ table: table('IPv4'), scope: full }, signal);
    expect(await first.observers.age?.read(signal)).toBeUndefined();
    await first.observers.age?.mark(signal);
    await pause(2500);
    await using second = await open(host());
    const age = (await second.observers.age?.read(signal)) ?? Number.NaN;
    expect(age).toBeGreaterThanOrEqual(2500);
    expect(age).toBeLessThan(6000);
    await first.observers.age?.mark(signal);
    expect(await second.observers.age?.read(signal)).toBeLessThan(2000);
  });

  test('nft prints the time of the last heartbeat, one per family, and how much of the timeout is left', async () => {
    await nft('flush', 'ruleset');
    await using four = await open(host(), 'IPv4');
    await using six = await open(host(), 'IPv6');
    for (const backend of [four, six]) {
      await backend.apply({ table: table(backend.ipFamily), scope: full }, signal);
      await backend.observers.age?.mark(signal);
      await backend.observers.age?.mark(signal);
    }
    for (const set of ['heartbeat4', 'heartbeat6']) {
      const listed = await nft('list', 'set', 'inet', 'switchyard', set);
      const match = /elements = \{ "([-0-9: ]+)" timeout 1000d expires (999d23h59m\S+) \}/.exec(listed);
      expect(match, listed).not.toBeNull();
      // nft prints local time, as does the parser of Date for this form.
      expect(Math.abs(Date.now() - Date.parse((match?.[1] ?? '').replace(' ', 'T')))).toBeLessThan(10_000);
    }
  });

  test('a heartbeat outlives a full apply of the next process, and a cleanup takes it away with the table', async () => {
    await nft('flush', 'ruleset');
    await using first = await open(host());
    await first.apply({ table: table('IPv4'), scope: full }, signal);
    await first.observers.age?.mark(signal);
    await using second = await open(host());
    await second.apply({ table: table('IPv4'), scope: full }, signal);
    expect(await second.observers.age?.read(signal)).toBeDefined();
    await second.cleanup(signal);
    expect(await nft('list', 'tables')).toBe('');
    expect(await second.observers.age?.read(signal)).toBeUndefined();
  });

  test('the heartbeat of a table of another build is read, too', async () => {
    await nft('flush', 'ruleset');
    const script = printTable(skeleton('switchyard')).replace(/(birthmark .*)0x\w+/, '$10x1');
    const loaded = await node.run('nft', ['-f', '-'], { stdin: script });
    expect(loaded.exitCode, loaded.stderr).toBe(0);
    await nft(
      'add',
      'element',
      'inet',
      'switchyard',
      'heartbeat4',
      '{ "2026-01-01 00:00:00" timeout 1000d expires 999d }',
    );
    await using backend = await open(host());
    expect(await backend.observers.age?.read(signal)).toBeGreaterThan(86_390_000);
    await backend.apply({ table: table('IPv4'), scope: full }, signal);
    expect(await backend.observers.age?.read(signal)).toBeUndefined();
  });
});

test('heartbeats are no drift to either family, nor to another process that writes them', async () => {
  await nft('flush', 'ruleset');
  const drifts: unknown[] = [];
  const host: NftablesHost = hostIn(node);
  await using four = await open(host, 'IPv4');
  await using six = await open(host, 'IPv6');
  const stop = new AbortController();
  for (const backend of [four, six]) await backend.apply({ table: table(backend.ipFamily), scope: full }, signal);
  const watching = [four, six].map((backend) => backend.observers.drift?.((drift) => drifts.push(drift), stop.signal));
  await pause(200);
  for (let round = 0; round < 20; round++) {
    await four.observers.age?.mark(signal);
    await six.observers.age?.mark(signal);
  }
  await nft('flush', 'set', 'inet', 'switchyard', 'heartbeat4');
  await pause(500);
  expect(drifts).toEqual([]);
  stop.abort();
  await Promise.all(watching);
});
