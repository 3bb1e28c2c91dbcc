import { parseIp, parsePort } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { Expectation } from '@switchyard/scenarios';
import type { Seen } from '../model/test-environment.ts';
import { type ErrorLimits, mostPaced, probeFlow } from './probe-flow.ts';

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
  return { attempts: seen.attempts, seen: shown(seen) };
}

function shown(seen: Awaited<ReturnType<typeof probeFlow>>): unknown {
  if (seen.status === 'inconclusive') return seen.because;
  return seen.status === 'mixed' ? seen.text : seen.observation;
}

/** One attempt's answer, and how many errors the node's limits hold back meanwhile. */
type Met = readonly [answer: Seen, heldBack: number];

/** Probes that meet these, one after the other, on a node that counts what it holds back, or does not. */
async function lookLimited(
  expectation: Expectation,
  meets: readonly Met[],
  isCounted = true,
): Promise<{ readonly attempts: number; readonly seen: unknown; readonly paced: number }> {
  let [made, held, paced] = [0, 0, 0];
  const limits: ErrorLimits = {
    heldBack: async () => (isCounted ? held : undefined),
    paced: (work) => {
      paced += 1;
      return work();
    },
  };
  const attempt = async (count: number): Promise<readonly Seen[]> =>
    Array.from({ length: count }, () => {
      const [answer, more] = meets[Math.min(made++, meets.length - 1)] ?? [timeout, 0];
      held += more;
      return answer;
    });
  const seen = await probeFlow(expectation, attempt, limits);
  return { attempts: seen.attempts, seen: shown(seen), paced };
}

describe('where the node limits its ICMP errors', () => {
  const [reject, drop]: readonly Expectation[] = [{ kind: 'reject' }, { kind: 'drop' }];
  const swallowed: Met = [timeout, 1];
  const silent: Met = [timeout, 0];

  test.each<{
    readonly title: string;
    readonly expected: Expectation | undefined;
    readonly meets: readonly Met[];
    readonly isCounted?: boolean;
    readonly seen: unknown;
    readonly attempts: number;
    readonly paced: number;
  }>([
    {
      title: 'a reject that was held back is looked at again, when an error is allowed',
      expected: reject,
      meets: [swallowed, swallowed, swallowed, [refused, 0]],
      seen: { kind: 'reject' },
      attempts: 4,
      paced: 2,
    },
    {
      title: 'of two rejects one that came speaks for one that was held back',
      expected: reject,
      meets: [[refused, 0], swallowed],
      seen: { kind: 'reject' },
      attempts: 2,
      paced: 0,
    },
    {
      title: 'silence in which nothing was held back is a drop, at once',
      expected: reject,
      meets: [silent],
      seen: { kind: 'drop' },
      attempts: 2,
      paced: 0,
    },
    {
      title: 'silence while errors of others were held back is a drop, when it stays without them',
      expected: reject,
      meets: [swallowed, silent],
      seen: { kind: 'drop' },
      attempts: 3,
      paced: 1,
    },
    {
      title: 'a reject where silence is expected shows itself when an error is allowed',
      expected: drop,
      meets: [swallowed, swallowed, swallowed, [refused, 0]],
      seen: { kind: 'reject' },
      attempts: 4,
      paced: 1,
    },
    {
      title: 'an endpoint that answers is no reject',
      expected: reject,
      meets: [swallowed, swallowed, [answer('10.244.1.5'), 0]],
      seen: '2 x timeout, 1 x 10.244.1.5 port 8080',
      attempts: 3,
      paced: 1,
    },
    {
      title: 'a node that does not count is judged by attempts at the pace that it allows',
      expected: reject,
      meets: [silent],
      isCounted: false,
      seen: { kind: 'drop' },
      attempts: 2 + mostPaced,
      paced: mostPaced,
    },
    {
      title: 'such a node answers then, where it rejects',
      expected: reject,
      meets: [silent, silent, [refused, 0]],
      isCounted: false,
      seen: { kind: 'reject' },
      attempts: 3,
      paced: 1,
    },
    {
      title: 'such a node is silent where silence is expected, as ever',
      expected: drop,
      meets: [silent],
      isCounted: false,
      seen: { kind: 'drop' },
      attempts: 3,
      paced: 0,
    },
  ])('$title', async ({ expected, meets, isCounted, seen, attempts, paced }) => {
    const outcome = await lookLimited(expected ?? { kind: 'pass' }, meets, isCounted);
    expect(outcome).toEqual({ seen, attempts, paced });
  });

  test('errors that are held back to the end leave it undecided, with the reason, in a bounded number of attempts', async () => {
    const { attempts, seen, paced } = await lookLimited({ kind: 'reject' }, [swallowed]);
    expect(seen).toMatch(/^rate limited: 7 attempts were silent, 5 of them one by one, .*icmp_ratelimit/);
    expect([attempts, paced]).toEqual([2 + mostPaced, mostPaced]);
  });
});

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
