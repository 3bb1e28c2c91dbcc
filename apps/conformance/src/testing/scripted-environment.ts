import { type IpAddress, ipFamilies, millis, type Millis, type Random } from '@switchyard/core';
import { seededRandom } from '@switchyard/core/testing';
import type { LoadOutcome, LoadResult, LoadRun, ProbeConnection } from '@switchyard/lab';
import type { Scenario, ScenarioFlow, ScenarioHealthCheck, ScenarioState, ScenarioStep } from '@switchyard/scenarios';
import type {
  TestEnvironment,
  FlowConnector,
  FirstAnswer,
  ProxyControl,
  ScenarioMoment,
  Seen,
} from '../model/test-environment.ts';
import type { Ability } from '../model/case.ts';
import type { ProxyUnderTest } from '../model/report-file.ts';
import type { LeapingClock } from './leaping-clock.ts';
import { ScriptedKernel } from './scripted-kernel.ts';
import { type Cause, rightProxy, type ScriptedProxy } from './scripted-proxy.ts';

const abilities: readonly Ability[] = [
  'restartProxy',
  'controlProxy',
  'configureProxy',
  'sendFromOutside',
  'changeNodes',
  'holdConnections',
  'holdSockets',
  'load',
];

/** Parts of a scripted environment. */
export interface ScriptedEnvironmentOptions {
  readonly clock: LeapingClock;
  readonly about: ProxyUnderTest;
  /** Where it differs from one that does everything right. */
  readonly proxy: Partial<ScriptedProxy>;
  /** Reason why a flow cannot be sent. Default: all can. */
  readonly flowObstacle?: (flow: ScenarioFlow) => string | undefined;
  readonly processorShare?: number;
}

/** An environment without packets: a kernel by core's tables, and a proxy that may be wrong in one way or another. */
export class ScriptedEnvironment implements TestEnvironment {
  readonly target = 'lab';
  readonly ipFamilies: TestEnvironment['ipFamilies'] = ipFamilies;
  readonly proxyUnderTest: ProxyUnderTest;
  readonly can: ReadonlySet<Ability> = new Set(abilities);
  readonly proxy: ProxyControl;
  readonly lab: undefined;
  readonly cluster: undefined;
  readonly processorShare: () => Promise<number>;
  readonly #script: ScriptedProxy;
  readonly #flowObstacle: (flow: ScenarioFlow) => string | undefined;
  readonly #clock: LeapingClock;
  readonly #kernel: ScriptedKernel;
  readonly #loads = new Set<ScriptedLoad>();
  readonly #connections = new Set<{ isBroken: boolean }>();
  #wanted: ScenarioMoment | undefined;
  #isRunning = true;
  #startedAt = millis(0);

  constructor({ clock, about, proxy, processorShare = 1, flowObstacle = () => undefined }: ScriptedEnvironmentOptions) {
    this.processorShare = async () => processorShare;
    this.#flowObstacle = flowObstacle;
    this.#clock = clock;
    this.#script = { ...rightProxy, ...proxy };
    this.proxyUnderTest = about;
    const random: Random = seededRandom('sequences');
    this.#kernel = new ScriptedKernel(this.#script, random, () => clock.monotonic());
    this.proxy = {
      onOtherNodes: async () => ({ [Symbol.asyncDispose]: () => Promise.resolve() }),
      kill: async () => this.#end('kill'),
      stop: async () => this.#end('stop'),
      start: async () => this.#start(),
      settled: async () => this.#follow('start'),
      ownEnd: () => Promise.resolve(undefined),
    };
  }

  stepObstacle(_scenario: Scenario, step: ScenarioStep): string | undefined {
    return step.kind === 'flow' ? this.#flowObstacle(step.flow) : undefined;
  }

  obstacle(): undefined {
    return undefined;
  }

  async reset(): Promise<void> {
    this.#isRunning = true;
    this.#wanted = undefined;
  }

  async put([moment]: readonly ScenarioMoment[], { wait }: { readonly wait: boolean }): Promise<void> {
    this.#wanted = moment;
    if (wait || this.#isRunning || this.#script.followsWhileDown) this.#follow('put');
  }

  async connectorFor(_scenario: Scenario, flow: ScenarioFlow): Promise<FlowConnector> {
    return {
      attempts: async (count) => Array.from({ length: count }, () => this.#kernel.send(flow)),
      hold: async () => {
        const seen = this.#kernel.send(flow);
        return { seen, connection: seen.kind === 'endpoint' ? this.#connection() : undefined };
      },
      connected: async () => {
        const first = this.#kernel.send(flow);
        const ask = async (): Promise<Seen> => (this.#script.keepsSockets ? first : this.#kernel.send(flow));
        return { ask, close: async () => undefined };
      },
      unconnected: async () => {
        const ask = async (): Promise<Seen> => {
          const seen = this.#kernel.send(flow);
          return this.#script.answersAsEndpoint ? { kind: 'timeout' } : seen;
        };
        return { ask, close: async () => undefined };
      },
      load: () => {
        const load = new ScriptedLoad(() => this.#kernel.send(flow).kind === 'endpoint');
        this.#loads.add(load);
        return load;
      },
      firstAnswer: async (by) => this.#firstAnswer(flow, by),
    };
  }

  async health(_scenario: Scenario, check: ScenarioHealthCheck): Promise<string> {
    return this.#script.health(this.#isRunning ? this.#kernel.health(check) : 'closed');
  }

  async icmpErrorsHeldBack(): Promise<number | undefined> {
    return 0;
  }

  async trace(): Promise<readonly string[]> {
    return [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#loads.clear();
  }

  #end(cause: 'kill' | 'stop'): void {
    this.#isRunning = false;
    this.#become(this.#script.ended(this.#kernel.state, cause), cause);
  }

  #start(): Millis {
    this.#isRunning = true;
    this.#startedAt = this.#clock.monotonic();
    this.#become(this.#script.starting(this.#kernel.state), 'start');
    return this.#startedAt;
  }

  #follow(cause: Cause): void {
    if (this.#wanted === undefined) return;
    this.#become(this.#script.apply(this.#wanted.state, this.#kernel.state, cause), cause);
  }

  #become(state: ScenarioState, cause: Cause): void {
    if (this.#wanted === undefined) return;
    const isBroken = this.#script.breaksBy(cause, state);
    this.#kernel.hold(this.#wanted.scenario, state);
    for (const load of this.#loads) load.meet(this.#script.lostBy(cause));
    if (isBroken) for (const connection of this.#connections) connection.isBroken = true;
  }

  #firstAnswer(flow: ScenarioFlow, by: IpAddress): FirstAnswer {
    this.#follow('start');
    for (let attempt = 0; attempt < 20; attempt++) {
      const last = this.#kernel.send(flow);
      if (last.kind !== 'endpoint' || last.address !== by) continue;
      return { at: millis(this.#startedAt + this.#script.startsWithin), last };
    }
    return { at: undefined, last: this.#kernel.send(flow) };
  }

  #connection(): ProbeConnection {
    const connection = { isBroken: false };
    this.#connections.add(connection);
    return {
      exchange: async () => ({ status: connection.isBroken ? 'reset' : 'echoed' }),
      close: async () => {
        this.#connections.delete(connection);
      },
    };
  }
}

/** A load that sends a request at each change of the kernel. */
class ScriptedLoad implements LoadRun {
  readonly finished: Promise<readonly LoadResult[]> = Promise.resolve([]);
  readonly pid = 1;
  readonly logFile = '';
  readonly #isAnswered: () => boolean;
  readonly #results: LoadResult[] = [];

  constructor(isAnswered: () => boolean) {
    this.#isAnswered = isAnswered;
    this.meet(0);
  }

  /** A request now, and so many that are lost besides. */
  meet(lost: number): void {
    this.#add(this.#isAnswered() ? 'answered' : 'timeout');
    for (let left = lost; left > 0; left--) this.#add('refused');
  }

  async stop(): Promise<readonly LoadResult[]> {
    return this.#results;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<LoadResult> {
    yield* this.#results;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#results.length = 0;
  }

  #add(outcome: LoadOutcome): void {
    const sequence = this.#results.length;
    const at = millis(sequence * 10);
    this.#results.push({
      sequence,
      scheduledAt: at,
      sentAt: at,
      doneAt: at,
      outcome,
      answeredBy: undefined,
      httpStatus: undefined,
    });
  }
}
