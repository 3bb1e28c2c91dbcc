import { ipFamilyOf, type IpAddress } from '@switchyard/core';
import { setImmediate } from 'node:timers/promises';
import type { ScenarioFlow, ScenarioStep } from '@switchyard/scenarios';
import { expect, test } from 'vitest';
import { scenarioCases } from '../cases/scenario-cases.ts';
import type { TestEnvironment, FlowConnector, Seen } from '../model/test-environment.ts';
import { MemoryRecorder } from '../testing/memory-recorder.ts';
import { ErrorPace, Gate } from './error-pace.ts';
import { runSteps } from './run-scenario.ts';

const { signal } = new AbortController();

/** Turns of the event loop until a flow is sent: calls to pods through an API server arrive in any order. */
type Delay = (flow: ScenarioFlow, index: number) => number;

/**
 * A cluster whose proxy remembers one endpoint per client, the last one, as the eBPF mode does. The proxy cannot be restarted. An external
 * address uses all endpoints, a cluster IP those of node1.
 */
class RememberingEnvironment {
  readonly #delay: Delay;
  #local: readonly IpAddress[] = [];
  #all: readonly IpAddress[] = [];
  #client: IpAddress | undefined;
  #connectors = 0;

  constructor(delay: Delay) {
    this.#delay = delay;
  }

  async put([moment]: Parameters<TestEnvironment['put']>[0]): Promise<void> {
    const endpoints = [...(moment?.state.endpoints.values() ?? [])].flat();
    this.#all = endpoints.map(({ ip }) => ip);
    this.#local = endpoints.filter(({ node }) => node === 'node1').map(({ ip }) => ip);
  }

  async connectorFor(_scenario: unknown, flow: ScenarioFlow): Promise<Pick<FlowConnector, 'attempts'>> {
    const turns = this.#delay(flow, this.#connectors++);
    return {
      attempts: async (count) => {
        for (let turn = 0; turn < turns; turn++) await setImmediate();
        return Array.from({ length: count }, () => this.#send(flow));
      },
    };
  }

  #send({ to, expect: wanted }: ScenarioFlow): Seen {
    const isClusterIp = /^10\.96\.|^fd00:10:96:/.test(to);
    const usable = isClusterIp ? this.#local : this.#all;
    if (this.#client === undefined || !usable.includes(this.#client)) this.#client = usable[0];
    if (this.#client === undefined) return { kind: 'refused' };
    const isMasqueraded = wanted.kind === 'forward' && wanted.masquerade;
    return { kind: 'endpoint', address: this.#client, port: 8080, isMasqueraded, isSender: false };
  }
}

const cases = scenarioCases({ dataplane: 'ebpf' }).filter(({ id }) =>
  id.startsWith('scenario/affinity-both-policies-inside/'),
);
const isRestart = ({ kind }: ScenarioStep): boolean => kind === 'restartAgent';

test.each<[string, Delay]>([
  ['the first flow is the slowest', (_, index) => 20 - 2 * index],
  ['the last flow is the slowest', (_, index) => 2 * index],
])(
  'flows of a client that is remembered are sent in their order, without a restart between them: %s',
  async (_, delay) => {
    expect(cases.map(({ scenario }) => ipFamilyOf(scenario.endpoints[0]!.ip)).toSorted()).toEqual(['IPv4', 'IPv6']);
    for (const { scenario } of cases) {
      const record = new MemoryRecorder();
      const environment = new RememberingEnvironment(delay) as unknown as TestEnvironment; // the part that a scenario without restarts uses
      const steps = scenario.steps.filter((step) => !isRestart(step));
      const run = {
        environment,
        record,
        gate: new Gate(160),
        pace: new ErrorPace(environment, signal),
        traced: () => Promise.resolve(),
      };
      await runSteps({ ...run, scenario: { ...scenario, steps }, signal });
      expect(record.checks.filter(({ isAsExpected }) => !isAsExpected)).toEqual([]);
      expect(record.checks).toHaveLength(4);
    }
  },
);

test('a restart beside no flow that can be sent is done, and its check is skipped', async () => {
  const calls: string[] = [];
  const call = (name: string) => async () => void calls.push(name);
  const proxy = { kill: call('kill'), start: call('start'), settled: call('settled') };
  const environment = { proxy, put: call('put') } as unknown as TestEnvironment; // the part that a restart uses
  const record = new MemoryRecorder();
  const [one] = cases;
  const scenario = { ...one!.scenario, steps: [{ kind: 'restartAgent', line: 9 } as const] };
  const pace = new ErrorPace(environment, signal);
  const traced = (): Promise<void> => Promise.resolve();
  await runSteps({ scenario, environment, record, gate: new Gate(160), pace, traced, signal });
  expect(calls).toEqual(['put', 'kill', 'start', 'settled']);
  expect([record.checks, record.skipped]).toEqual([[], [{ id: 'line 9', because: 'no flow can be sent meanwhile' }]]);
});
