import { describe, expect, test } from 'vitest';
import { serviceKey } from '../../model/records/keys.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { MemoryLogger } from '../../testing/memory-logger.ts';
import { MemoryMetrics } from '../../testing/memory-metrics.ts';
import { millis, seconds } from '../../base/time.ts';
import { ProgrammingLatency } from './family-metrics.ts';

/** The wall clock is an hour ahead of the monotonic one. */
const hour = 3_600_000;

function setUp() {
  const clock = new ManualClock(1_000_000);
  const logger = new MemoryLogger();
  const metrics = new MemoryMetrics();
  const latency = new ProgrammingLatency({ ipFamily: 'IPv4', clock, logger, metrics });
  /** A change that was made so long ago is heard of now. */
  const hear = (age: number, name = 'cart'): void =>
    latency.accept([
      {
        service: serviceKey('shop', name),
        changed: millis(clock.monotonic() - age),
        triggerTime: millis(clock.monotonic() + hour - age),
      },
    ]);
  /** A whole run that takes no time. */
  const run = (): void => {
    latency.beginRun();
    latency.beginApply();
    latency.finishRun();
  };
  const observed = () => metrics.observed.get('kubeproxy_network_programming_duration_seconds{ip_family=IPv4}') ?? [];
  const told = () => logger.lines.map(({ fields }) => fields['service']);
  return { clock, logger, latency, hear, run, observed, told };
}

describe('the distribution', () => {
  test('has each change of a run once, from its trigger to the end of the run', async () => {
    const { clock, latency, hear, run, observed } = setUp();
    hear(500);
    hear(100);
    latency.beginRun();
    await clock.advance(400);
    latency.finishRun();
    expect(observed()).toEqual([0.9, 0.5]);
    run();
    expect(observed()).toHaveLength(2);
  });

  test('lacks what was heard during the run, until the next one', async () => {
    const { clock, latency, hear, run, observed } = setUp();
    latency.beginRun();
    hear(0);
    latency.finishRun();
    expect(observed()).toEqual([]);
    await clock.advance(1000);
    run();
    expect(observed()).toEqual([1]);
  });

  test('has a change whose run failed with the run that succeeds', async () => {
    const { clock, latency, hear, run, observed } = setUp();
    hear(0);
    latency.beginRun();
    latency.beginApply();
    await clock.advance(1000);
    hear(0);
    run();
    expect(observed()).toEqual([1, 0]);
  });

  test('takes a thousand changes of a run at most', () => {
    const { hear, run, observed } = setUp();
    for (let index = 0; index < 1500; index++) hear(0);
    run();
    expect(observed()).toHaveLength(1000);
  });
});

describe('the log', () => {
  test('names the slowest change of a run and where its time went', async () => {
    const { clock, latency, logger, hear } = setUp();
    hear(100, 'quick');
    hear(2500, 'slow');
    await clock.advance(1000);
    latency.beginRun();
    await clock.advance(20);
    latency.beginApply();
    await clock.advance(300);
    latency.finishRun();
    expect(logger.lines).toEqual([
      {
        level: 'info',
        message: 'slow network programming',
        fields: {
          ipFamily: 'IPv4',
          service: 'shop/slow',
          triggerTime: '1970-01-01T01:16:37.500Z',
          durationMs: 3820,
          untilHeardMs: 2500,
          waitedMs: 1000,
          buildMs: 20,
          applyMs: 300,
          isSlowestOfTenMinutes: true,
          omittedLines: 0,
        },
      },
    ]);
  });

  test.each<readonly [string, readonly (readonly [name: string, age: number, pause: number])[], readonly string[]]>([
    ['nothing that took less than the second that trigger times are rounded to', [['a', 1999, 0]], []],
    [
      'one that is slower than all of the last ten minutes',
      [
        ['a', 2000, 60_000],
        ['b', 2000, 60_000],
        ['c', 2001, 60_000],
      ],
      ['shop/a', 'shop/c'],
    ],
    [
      'the same again after ten minutes',
      [
        ['a', 3000, 600_001],
        ['b', 2500, 0],
      ],
      ['shop/a', 'shop/b'],
    ],
    [
      'each that took ten seconds',
      [
        ['a', 30_000, 60_000],
        ['b', 10_000, 60_000],
        ['c', 9999, 60_000],
      ],
      ['shop/a', 'shop/b'],
    ],
    [
      'at most one in ten seconds',
      [
        ['a', 30_000, 9_999],
        ['b', 40_000, 1],
        ['c', 50_000, 0],
      ],
      ['shop/a', 'shop/c'],
    ],
  ])('%s', async (_, changes, expected) => {
    const { clock, hear, run, told } = setUp();
    for (const [name, age, pause] of changes) {
      hear(age, name);
      run();
      await clock.advance(pause);
    }
    expect(told()).toEqual(expected);
  });

  test('says how many lines were left out', async () => {
    const { clock, logger, hear, run } = setUp();
    for (const age of [11_000, 12_000, 13_000]) {
      hear(age);
      run();
    }
    await clock.advance(seconds(10));
    hear(14_000);
    run();
    expect(logger.lines.map(({ fields }) => fields['omittedLines'])).toEqual([0, 2]);
  });
});
