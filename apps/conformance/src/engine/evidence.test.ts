import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { MachineEvidence } from '../model/test-environment.ts';
import { aCheck, aFailedCheck } from '../testing/report-builders.ts';
import { EvidenceTimes, isWorthRepeating, loadEvidence, withoutEvidence, withoutProcessor } from './evidence.ts';

const { signal } = new AbortController();
const silent = aCheck({ expected: 'drop', observed: 'drop' });

const machine = (slowest: number, shortage?: string): MachineEvidence => ({ slowest: millis(slowest), shortage });

describe('a check', () => {
  test.each([
    ['that failed while the machine was quiet', aFailedCheck(), 199, true],
    ['that failed while a request was late', aFailedCheck(), 200, false],
    ['that passed by an answer', aCheck(), 5000, true],
    ['that passed by silence while an answer would have been in time', silent, 399, true],
    ['that passed by silence while an answer would have been late', silent, 400, false],
  ])('%s counts: %s', async (_, check, slowest, counts) => {
    expect((await withoutEvidence(check, async () => machine(slowest), signal)) === undefined).toBe(counts);
  });

  test.each([
    ['that failed', aFailedCheck(), false],
    ['that passed by silence', silent, false],
    ['that passed by an answer', aCheck(), true],
  ])('a check %s while the kernel dropped packets', async (_, check, counts) => {
    const open = await withoutEvidence(check, async () => machine(3, 'a queue was full'), signal);
    expect(open === undefined).toBe(counts);
    if (open === undefined) return;
    expect(open.because).toMatch(
      /^the machine was too busy: the kernel dropped packets meanwhile: a queue was full \(/,
    );
    expect(isWorthRepeating(open)).toBe(true);
  });

  test('counts where the machine is not measured, and is not measured where nothing hangs on it', async () => {
    expect(await withoutEvidence(aFailedCheck(), async () => undefined, signal)).toBeUndefined();
    await withoutEvidence(
      aCheck(),
      async () => {
        throw new Error('measured');
      },
      signal,
    );
  });

  test('has no verdict where the measurement failed, unless the run was stopped', async () => {
    const fails = async (): Promise<never> => {
      throw new Error('the watch has ended');
    };
    expect((await withoutEvidence(aFailedCheck(), fails, signal))?.because).toBe(
      'how busy the machine was is not known: the watch has ended',
    );
    await expect(withoutEvidence(aFailedCheck(), fails, AbortSignal.abort(new Error('stopped')))).rejects.toThrow(
      'stopped',
    );
  });

  test('without a verdict has the reason with what was seen, and is worth another attempt', async () => {
    const open = await withoutEvidence(aFailedCheck({ id: 'line 3' }), async () => machine(640.4), signal);
    expect(open).toMatchObject({
      id: 'line 3',
      because:
        'the machine was too busy: a request that no proxy forwards took 640 ms meanwhile (expected forward to 10.244.1.5, saw drop)',
    });
    expect(isWorthRepeating(open ?? { id: '', what: '', because: '' })).toBe(true);
    expect(isWorthRepeating({ id: '', what: '', because: 'rate limited: 4 attempts were silent' })).toBe(false);
  });
});

describe('a load', () => {
  const request = (sentAt: number, took: number, outcome = 'answered', late = 0) => ({
    scheduledAt: millis(sentAt - late),
    sentAt: millis(sentAt),
    doneAt: millis(sentAt + took),
    outcome,
  });
  const lost = (sentAt: number, outcome = 'timeout') => request(sentAt, 900, outcome);

  test('whose requests were sent late proves nothing', () => {
    const late = (by: number) => loadEvidence([request(1000, 3), request(1100, 3, 'answered', by)]).doubt;
    expect(late(499)).toBeUndefined();
    expect(late(512.4)).toBe('the machine was too busy: a request was sent 512 ms after it was due');
    expect(isWorthRepeating({ id: '', what: '', because: late(600) ?? '' })).toBe(true);
  });

  test('loses its requests to the proxy while others are answered at once', () => {
    const requests = [request(1000, 3), lost(1025), request(1050, 199), lost(1075)];
    expect(loadEvidence(requests)).toEqual({ counting: requests, doubt: undefined });
  });

  test('loses requests to the machine while others are answered late', () => {
    const [before, after, refused] = [lost(0), lost(3700), lost(2100, 'refused')];
    const [first, last] = [request(100, 3), request(3650, 3)];
    const slow = request(2000, 640.4);
    const { counting, doubt } = loadEvidence([before, first, lost(200), slow, refused, lost(3600), last, after]);
    expect(counting).toEqual([before, first, slow, refused, last, after]);
    expect(doubt).toBe('the machine was too busy: 2 requests were not answered in time, and others after 640 ms');
  });

  test('loses all requests of a silence to the machine that begins or ends with late answers', () => {
    const silence = [lost(1000), lost(3000), lost(5000), lost(7000)];
    const [prompt, slow] = [request(500, 3), request(8000, 500)];
    expect(loadEvidence([prompt, ...silence, slow]).counting).toEqual([prompt, slow]);
    expect(loadEvidence([prompt, ...silence]).counting).toHaveLength(5);
  });

  test('loses requests to the machine while those of another load are answered late', () => {
    const [own, slow] = [[request(1000, 3), lost(1500)], request(1400, 700)];
    expect(loadEvidence(own, [...own, slow]).counting).toEqual([own[0]]);
  });
});

test.each([
  [undefined, undefined],
  [0.81, undefined],
  [0.5, 'the machine was too busy: a program got 50 % of a processor'],
])('a share of %s of a processor', (share, why) => {
  expect(withoutProcessor(share)).toBe(why);
});

test('evidence begins with the check before, but for checks that were made together', () => {
  const times = new EvidenceTimes(millis(1000));
  expect(times.note(millis(3000))).toBe(1000);
  expect(times.note(millis(3050))).toBe(1000);
  expect(times.note(millis(5000))).toBe(3050);
});
