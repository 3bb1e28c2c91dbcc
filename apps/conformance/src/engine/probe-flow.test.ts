import { parseIp, parsePort } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { Expectation } from '@switchyard/scenarios';
import type { Seen } from '../model/bed.ts';
import { probeFlow } from './probe-flow.ts';

function answer(address: string, more: Partial<Extract<Seen, { readonly kind: 'endpoint' }>> = {}): Seen {
  return { kind: 'endpoint', address: parseIp(address), port: 8080, isMasqueraded: false, isSender: false, ...more };
}

function forward(addresses: readonly string[], isHairpinMasqueraded = true): Expectation {
  const to = addresses.map((one) => ({ address: parseIp(one), port: undefined }));
  return { kind: 'forward', to, masquerade: false, isHairpinMasqueraded };
}

const refused: Seen = { kind: 'refused' };
const timeout: Seen = { kind: 'timeout' };

/** Probes answered from a list, over and over. */
async function look(
  expectation: Expectation,
  ...answers: readonly Seen[]
): Promise<{ attempts: number; seen: unknown }> {
  let made = 0;
  const seen = await probeFlow(expectation, async (count) =>
    Array.from({ length: count }, () => answers[made++ % answers.length] ?? timeout),
  );
  return { attempts: seen.attempts, seen: seen.status === 'mixed' ? seen.text : seen.observation };
}

describe('probeFlow', () => {
  test('stops when each endpoint has answered, after enough attempts to notice another', async () => {
    const { attempts, seen } = await look(
      forward(['10.244.1.5', '10.244.2.5']),
      answer('10.244.1.5'),
      answer('10.244.2.5'),
    );
    expect(seen).toMatchObject({ kind: 'forward', masquerade: false });
    expect(attempts).toBe(12);
  });

  test('goes on for an endpoint that is chosen seldom', async () => {
    const seldom = [...Array.from({ length: 15 }, () => answer('10.244.1.5')), answer('10.244.2.5')];
    expect((await look(forward(['10.244.1.5', '10.244.2.5']), ...seldom)).attempts).toBeGreaterThan(12);
  });

  test('gives up on an endpoint that never answers, and says who did', async () => {
    const { attempts, seen } = await look(forward(['10.244.1.5', '10.244.2.5']), answer('10.244.1.5'));
    expect(attempts).toBeGreaterThanOrEqual(44);
    expect(seen).toMatchObject({
      kind: 'forward',
      to: Array.from({ length: attempts }, () => ({ address: '10.244.1.5' })),
    });
  });

  test.each([
    { title: 'a stranger among the endpoints', answers: [answer('10.244.1.5'), answer('10.244.2.9')] },
    { title: 'a single timeout', answers: [...Array.from({ length: 7 }, () => answer('10.244.1.5')), timeout] },
    { title: 'a masqueraded source that should be kept', answers: [answer('10.244.1.5', { isMasqueraded: true })] },
  ])('ends after the first attempts with $title', async ({ answers }) => {
    const { attempts, seen } = await look(forward(['10.244.1.5']), ...answers);
    expect(attempts).toBe(8);
    expect(seen).not.toMatchObject({ kind: 'forward', to: [{ address: '10.244.1.5' }], masquerade: false });
  });

  test('counts what it saw when that is no single outcome', async () => {
    const { seen } = await look(forward(['10.244.1.5']), answer('10.244.1.5'), refused);
    expect(seen).toBe('4 x 10.244.1.5 port 8080, 4 x refused');
  });

  test('a sender that answers itself unmasqueraded is no outcome', async () => {
    const own = answer('10.244.1.5', { isSender: true });
    expect((await look(forward(['10.244.1.5']), own)).seen).toBe('8 x 10.244.1.5 port 8080');
  });

  test('unless its own socket chose it', async () => {
    const own = answer('10.244.1.5', { isSender: true });
    const expected = { kind: 'forward', masquerade: false };
    expect((await look(forward(['10.244.1.5'], false), own)).seen).toMatchObject(expected);
    const masqueraded = { ...own, isMasqueraded: true };
    expect((await look(forward(['10.244.1.5'], false), masqueraded)).seen).toBe('8 x 10.244.1.5 port 8080 masqueraded');
  });

  test.each([
    { expected: 'reject', answers: [refused], outcome: { kind: 'reject' } },
    { expected: 'reject', answers: [timeout], outcome: { kind: 'drop' } },
    { expected: 'drop', answers: [timeout], outcome: { kind: 'drop' } },
    { expected: 'drop', answers: [refused], outcome: { kind: 'reject' } },
    { expected: 'pass', answers: [refused], outcome: { kind: 'pass' } },
    {
      expected: 'pass',
      answers: [timeout, { kind: 'other', text: 'unreachable (EHOSTUNREACH)' }],
      outcome: { kind: 'pass' },
    },
  ] as const)('$expected, but everything is $answers.0.kind: $outcome.kind', async ({ expected, answers, outcome }) => {
    expect((await look({ kind: expected }, ...answers)).seen).toEqual(outcome);
  });

  test('a port that is named must be the one reached', async () => {
    const to = [{ address: parseIp('10.244.1.5'), port: parsePort(8081) }];
    const expected = { kind: 'forward', to, masquerade: false, isHairpinMasqueraded: true } as const;
    expect((await look(expected, answer('10.244.1.5'))).attempts).toBe(8);
  });
});
