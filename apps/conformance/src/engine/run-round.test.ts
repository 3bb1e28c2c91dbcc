import { ApiServerError, millis, parseIp, systemClock } from '@switchyard/core';
import type { ScenarioFlow } from '@switchyard/scenarios';
import { describe, expect, test } from 'vitest';
import type {
  TestEnvironment,
  FlowConnector,
  MachineEvidence,
  OwnEnd,
  ProxyControl,
  Seen,
} from '../model/test-environment.ts';
import type { ConformanceCase, ProgressEvent } from '../model/case.ts';
import { scenarioCase, sequenceCase } from '../testing/cases.ts';
import { type RoundOptions, runRound } from './run-round.ts';

const { signal } = new AbortController();
const right: Seen = {
  kind: 'endpoint',
  address: parseIp('10.244.2.5'),
  port: 8080,
  isMasqueraded: false,
  isSender: false,
};

/** An environment on which every attempt ends as given. */
function environmentWith(seen: Seen, more: Partial<TestEnvironment> = {}): TestEnvironment {
  const never = (): never => {
    throw new TypeError('not part of this test');
  };
  return {
    target: 'lab',
    ipFamilies: ['IPv4'],
    proxyUnderTest: { name: 'p', dataplane: 'nftables', command: undefined },
    can: new Set(),
    proxy: undefined,
    lab: undefined,
    cluster: undefined,
    obstacle: () => undefined,
    stepObstacle: () => undefined,
    reset: () => Promise.resolve(),
    put: () => Promise.resolve(),
    connectorFor: () =>
      Promise.resolve({
        attempts: (count: number) => Promise.resolve(Array.from({ length: count }, () => seen)),
        hold: never,
        holdSocket: never,
        load: never,
        firstAnswer: never,
      }),
    health: never,
    icmpErrorsHeldBack: () => Promise.resolve(0),
    trace: () => Promise.resolve(['a station']),
    [Symbol.asyncDispose]: () => Promise.resolve(),
    ...more,
  };
}

const anyFlow = [scenarioCase('a').scenario, {} as ScenarioFlow] as const; // never used

/** A proxy that takes a moment for everything. */
function proxyWith(more: Partial<ProxyControl> = {}): ProxyControl {
  const pause = (): Promise<void> => systemClock.sleep(millis(5), signal);
  return {
    kill: pause,
    stop: pause,
    start: () => Promise.resolve(millis(0)),
    settled: pause,
    onOtherNodes: () => Promise.reject(new Error('not here')),
    ownEnd: () => Promise.resolve(undefined),
    ...more,
  };
}

async function round(
  cases: readonly ConformanceCase[],
  environment: TestEnvironment,
  more: Partial<RoundOptions> = {},
): Promise<readonly string[]> {
  const lanes = [{ name: 'l', environment }];
  const run = { proxy: 'p', cell: 'ipv4', round: 1 } as const;
  const results = await runRound({ lanes, cases, run, random: () => 0, onProgress: () => undefined, ...more }, signal);
  return results.map(({ id, status, because }) => `${id} ${status}${because === undefined ? '' : `: ${because}`}`);
}

describe('runRound', () => {
  test.each([
    {
      title: 'what is seen is what is expected',
      environment: environmentWith(right),
      one: scenarioCase('a'),
      expected: 'a passed',
    },
    {
      title: 'something else is seen',
      environment: environmentWith({ kind: 'refused' }),
      one: scenarioCase('a'),
      expected: 'a failed',
    },
    {
      title: 'it is not for this dataplane',
      environment: environmentWith(right),
      one: scenarioCase('a', { notFor: 'not for nftables' }),
      expected: 'a skipped: not for nftables',
    },
    {
      title: 'the environment lacks an ability',
      environment: environmentWith(right),
      one: scenarioCase('a', { needs: ['sctp', 'load'] }),
      expected: 'a skipped: needs what this lab cannot: sctp, load',
    },
    {
      title: 'the environment says why not',
      environment: environmentWith(right, { obstacle: () => 'no BPF here' }),
      one: scenarioCase('a'),
      expected: 'a skipped: no BPF here',
    },
    {
      title: 'the environment fails',
      environment: environmentWith(right, { put: () => Promise.reject(new Error('the proxy has ended with 1')) }),
      one: scenarioCase('a'),
      expected: 'a error: the proxy has ended with 1',
    },
    {
      title: 'a program looks at nothing',
      environment: environmentWith(right),
      one: sequenceCase('a', () => Promise.resolve()),
      expected: 'a error: it looked at nothing',
    },
    {
      title: 'a program sees what it expects',
      environment: environmentWith(right),
      one: sequenceCase('a', async (_bed, record) =>
        record.check({ id: 'x', what: 'x', expected: 'y', observed: 'y', because: [] }),
      ),
      expected: 'a passed',
    },
    {
      title: 'a program that could not decide anything is a skip',
      environment: environmentWith(right),
      one: sequenceCase('a', async (_bed, record) =>
        record.inconclusive({ id: 'x', what: 'x', because: 'rate limited: too many' }),
      ),
      expected: 'a skipped: inconclusive: rate limited: too many',
    },
    {
      title: 'a program all of whose checks are beyond the environment is a skip',
      environment: environmentWith(right),
      one: sequenceCase('a', async (_bed, record) => record.skip({ id: 'x', because: 'no way to send that' })),
      expected: 'a skipped: no way to send that',
    },
    {
      title: 'a program that could not decide one of its checks has passed the other',
      environment: environmentWith(right),
      one: sequenceCase('a', async (_bed, record) => {
        record.inconclusive({ id: 'x', what: 'x', because: 'rate limited: too many' });
        record.check({ id: 'y', what: 'y', expected: 'y', observed: 'y', because: [] });
      }),
      expected: 'a passed',
    },
  ])('$title: $expected', async ({ environment, one, expected }) => {
    expect(await round([one], environment)).toEqual([expected]);
  });

  test('a scenario that the oracle contradicts is an error, independent of the proxy', async () => {
    const one = scenarioCase('a');
    const steps = one.scenario.steps.map((step) =>
      step.kind === 'flow' ? { ...step, flow: { ...step.flow, expect: { kind: 'reject' } as const } } : step,
    );
    const wrong = { ...one, scenario: { ...one.scenario, steps } };
    expect((await round([wrong], environmentWith({ kind: 'refused' })))[0]).toMatch(
      /^a error: .* one of them is wrong$/,
    );
  });

  test('what goes wrong with one case of a batch is nothing to the others', async () => {
    const [good, bad] = ['good', 'bad'].map((id) => scenarioCase(id, { batch: 'matrix' }));
    const environment = environmentWith(right);
    const connectorFor: TestEnvironment['connectorFor'] = async (scenario, flow, inner) => {
      if (scenario === bad?.scenario) throw new Error('no sender');
      return environment.connectorFor(scenario, flow, inner);
    };
    expect(await round([good!, bad!], { ...environment, connectorFor })).toEqual([
      'good passed',
      'bad error: no sender',
    ]);
  });

  test('of a batch the API server refuses one case; the others are run without it', async () => {
    const cases = ['a', 'b', 'c', 'd', 'e'].map((id) => scenarioCase(id, { batch: 'matrix' }));
    const refused = cases[3]?.scenario;
    const sizes: number[] = [];
    const put: TestEnvironment['put'] = async (moments) => {
      sizes.push(moments.length);
      if (!moments.some(({ scenario }) => scenario === refused)) return;
      throw new ApiServerError('api.422', 'the port is taken', { isRetryable: false, status: 422 });
    };
    expect(await round(cases, environmentWith(right, { put }))).toEqual([
      'a passed',
      'b passed',
      'c passed',
      'd error: the port is taken',
      'e passed',
    ]);
    expect(Math.max(...sizes)).toBe(5);
  });

  test('a proxy that ends by itself fails the case that it did not live through, and no other', async () => {
    const cases = ['a', 'b', 'c', 'd', 'e'].map((id) => scenarioCase(id, { batch: 'matrix' }));
    const deadly = cases[1]?.scenario;
    let end: OwnEnd | undefined;
    const put: TestEnvironment['put'] = async (moments) => {
      if (!moments.some(({ scenario }) => scenario === deadly)) return;
      end = { observed: 'has ended with 2', log: ['panic: a Service'] };
      throw new Error('the proxy has ended with 2');
    };
    const reset = async (): Promise<void> => void (end = undefined);
    const environment = environmentWith(right, {
      proxy: proxyWith({ ownEnd: () => Promise.resolve(end) }),
      put,
      reset,
    });
    expect(await round(cases, environment)).toEqual(['a passed', 'b failed', 'c passed', 'd passed', 'e passed']);
  });

  test('so does one that ends when all was seen to be right', async () => {
    const ownEnd = (): Promise<OwnEnd> => Promise.resolve({ observed: 'has ended with SIGSEGV', log: [] });
    expect(await round([scenarioCase('a')], environmentWith(right, { proxy: proxyWith({ ownEnd }) }))).toEqual([
      'a failed',
    ]);
  });

  test('a proxy that is restarted while no flow can be sent is an error with its cause', async () => {
    const one = scenarioCase('a');
    const [flow] = one.scenario.steps;
    const steps = [{ kind: 'restartAgent', line: 9 } as const, flow!];
    const environment = environmentWith(right, {
      proxy: proxyWith(),
      connectorFor: () => Promise.reject(new Error('the prober has ended')),
    });
    expect(await round([{ ...one, scenario: { ...one.scenario, steps } }], environment)).toEqual([
      'a error: the prober has ended',
    ]);
  });

  test('no environment is taken down while another lane still works', async () => {
    const stop = new AbortController();
    let isWorking = false;
    const slow = sequenceCase('slow', async () => {
      isWorking = true;
      await systemClock.sleep(millis(60), signal);
      isWorking = false;
    });
    const first = sequenceCase('first', () => {
      stop.abort(new Error('enough'));
      return Promise.reject(new Error('aborted'));
    });
    const lanes = ['l', 'm'].map((name) => ({ name, environment: environmentWith(right) }));
    const run = { proxy: 'p', cell: 'ipv4', round: 1 } as const;
    const options = { lanes, cases: [slow, first], run, random: () => 0.99, onProgress: () => undefined };
    await expect(runRound(options, stop.signal)).rejects.toThrow('enough');
    expect(isWorking).toBe(false);
  });

  test('an environment that fails three times in a row is given up; each case has a result', async () => {
    const cases = ['a', 'b', 'c', 'd', 'e'].map((id) => scenarioCase(id));
    const environment = environmentWith(right, { reset: () => Promise.reject(new Error('gone')) });
    const events: ProgressEvent[] = [];
    const results = await round(cases, environment, { onProgress: (event) => events.push(event) });
    expect(results.filter((text) => text.endsWith('error: gone'))).toHaveLength(3);
    expect(results.filter((text) => text.includes('failed several times in a row'))).toHaveLength(2);
    expect(events.filter(({ kind }) => kind === 'caseEnded')).toHaveLength(5);
  });

  test('after an early end the rest is skipped', async () => {
    let hasFailed = false;
    const stops = { onFailure: () => (hasFailed = true), isOver: () => hasFailed };
    const results = await round([scenarioCase('a'), scenarioCase('b')], environmentWith({ kind: 'timeout' }), stops);
    expect(results.filter((text) => text.endsWith(' failed'))).toHaveLength(1);
    expect(results.filter((text) => text.includes('skipped: not run: a case failed before'))).toHaveLength(1);
  });

  test('a failed flow has its path by the table and of the packets, taken before the cluster changes again', async () => {
    const order: string[] = [];
    const environment = environmentWith(
      { kind: 'refused' },
      {
        put: () => Promise.resolve(void order.push('put')),
        trace: async () => {
          for (let turn = 0; turn < 10; turn++) await Promise.resolve();
          order.push('trace');
          return ['a station'];
        },
      },
    );
    const one = scenarioCase('a');
    const [flow] = one.scenario.steps;
    const [service] = one.scenario.services;
    const steps = [flow!, { kind: 'putService', service: { ...service!, labels: { a: 'b' } }, line: 50 } as const];
    const run = { proxy: 'p', cell: 'ipv4', round: 1 } as const;
    const cases = [{ ...one, scenario: { ...one.scenario, steps } }];
    const options = { lanes: [{ name: 'l', environment }], cases, run, random: () => 0, onProgress: () => undefined };
    const [result] = await runRound(options, signal);
    expect(order).toEqual(['put', 'trace', 'put']);
    expect(result?.checks[0]?.path.map(({ run }) => run)).toEqual(['table', 'packets']);
    expect(result?.checks[0]?.path[1]?.lines).toEqual(['a station']);
    expect(result?.checks[0]?.path[0]?.lines[0]).toMatch(/forward to 10\.244\.2\.5$/);
  });

  test('of a case with many failures three are followed, and the others say why not', async () => {
    const one = scenarioCase('a');
    const [flow] = one.scenario.steps;
    const steps = [1, 2, 3, 4].map((line) => ({ ...flow!, line }));
    const cases = [{ ...one, scenario: { ...one.scenario, steps } }];
    const lanes = [{ name: 'l', environment: environmentWith({ kind: 'refused' }) }];
    const run = { proxy: 'p', cell: 'ipv4', round: 1 } as const;
    const options = { lanes, cases, run, random: () => 0, onProgress: () => undefined };
    const [result] = await runRound(options, signal);
    const station = ['a station'];
    const reason = ['not followed: it is after the 3 failures of this case that were'];
    expect(result?.checks.map(({ path }) => path[1]?.lines)).toEqual([station, station, station, reason]);
  });

  test.each(['single', 'batch'])(
    'ends at once when the signal aborts, though packets of a %s are under way and others wait',
    async (kind) => {
      const stop = new AbortController();
      let begun = 0;
      const attempts = (): Promise<never> => {
        begun += 1;
        if (begun === 2) queueMicrotask(() => stop.abort(new Error('enough')));
        return new Promise(() => undefined);
      };
      const connectorFor = async (): Promise<FlowConnector> => ({
        ...(await environmentWith(right).connectorFor(...anyFlow, signal)),
        attempts,
      });
      const cases = Array.from({ length: 60 }, (_, index) =>
        scenarioCase(`a${index}`, kind === 'batch' ? { batch: 'b' } : {}),
      );
      const lanes = ['l', 'm'].map((name) => ({ name, environment: environmentWith(right, { connectorFor }) }));
      const run = { proxy: 'p', cell: 'ipv4', round: 1 } as const;
      const options = { lanes, cases, run, random: () => 0, onProgress: () => undefined };
      await expect(runRound(options, stop.signal)).rejects.toThrow('enough');
      expect(begun).toBeLessThan(cases.length);
    },
  );
});

/** A machine that dropped nothing. */
const calm = (slowest = 0): MachineEvidence => ({ slowest: millis(slowest), shortage: undefined });

describe('on a busy machine', () => {
  const failing = (): ConformanceCase =>
    sequenceCase('a', async (_bed, record) =>
      record.check({ id: 'x', what: 'x', expected: 'y', observed: 'z', because: [] }),
    );

  test('a failure is no verdict: the case runs three times at most', async () => {
    let measured = 0;
    const environment = environmentWith(right, {
      machineBetween: async () => {
        measured++;
        return calm(700);
      },
    });
    expect(await round([failing()], environment)).toEqual([
      'a skipped: inconclusive: the machine was too busy: a request that no proxy forwards took 700 ms meanwhile (expected y, saw z)',
    ]);
    expect(measured).toBe(3);
  });

  test('the first attempt with a verdict counts', async () => {
    const times = [700, 3];
    const environment = environmentWith(right, { machineBetween: async () => calm(times.shift()) });
    expect(await round([failing()], environment)).toEqual(['a failed']);
    expect(times).toEqual([]);
  });

  test('only the case without a verdict runs again, of a batch', async () => {
    const seen: string[] = [];
    const cases = ['a', 'b'].map((id) => scenarioCase(id, { batch: 'both' }));
    const environment = environmentWith(
      { kind: 'refused' },
      {
        machineBetween: async () => calm(seen.length < 3 ? 700 : 0),
      },
    );
    const onProgress = (event: ProgressEvent): void => {
      if (event.kind === 'caseStarted') seen.push(event.id);
    };
    expect(await round(cases, environment, { onProgress })).toEqual(['a failed', 'b failed']);
    expect(seen.slice(0, 4)).toEqual(['a', 'b', 'a', 'b']);
  });
});
