import { type Clock, InvariantError, type IpFamily, type Millis, millis } from '@switchyard/core';
import {
  type DataplaneName,
  emptyState,
  type Expectation,
  expectationText,
  flowText,
  healthStepText,
  healthText,
  type Scenario,
  type ScenarioAgent,
  type ScenarioEndpoint,
  type ScenarioHealthCheck,
  type ScenarioService,
} from '@switchyard/scenarios';
import { ErrorPace } from '../../../engine/error-pace.ts';
import type { ErrorLimits } from '../../../engine/probe-flow.ts';
import type { TestEnvironment, FlowConnector, ProxyControl } from '../../../model/test-environment.ts';
import type { CaseRecorder, FlowAt } from '../../../model/recorder.ts';
import { type Call, ObjectFactory, momentScenario, plainAgent } from './object-factory.ts';
import { lookAt } from './look.ts';

/** Description of a sequence, used for its case and for the scenarios that it gives to the environment. */
export interface About {
  readonly id: string;
  readonly title: string;
  readonly why: string;
  /** Family of the first addresses of a Service. */
  readonly ipFamily: IpFamily;
  readonly isDualStack: boolean;
  readonly dataplane: DataplaneName;
}

/** Inputs of a run of a sequence. */
export interface SequenceContextOptions {
  readonly about: About;
  readonly environment: TestEnvironment;
  readonly record: CaseRecorder;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Change of the cluster's content. Absent fields stay as they are. */
export interface Change {
  /** Services to put; others stay. */
  readonly services?: readonly ScenarioService[];
  /** Services to remove, with their endpoints. */
  readonly without?: readonly ScenarioService[];
  /** All endpoints of all Services from now on. */
  readonly endpoints?: readonly ScenarioEndpoint[];
  /** Address in node1's Node object: an IPv4 address of the plan. */
  readonly nodeAddress?: string;
}

/** Expected result of a call. `id` names the check. */
export interface ExpectedFlow {
  readonly id: string;
  readonly call: Call;
  readonly expect: Expectation;
}

const healthPatience = millis(1500);
const healthInterval = millis(20);

/** A running sequence: the content of the cluster, and helpers that change it and record checks. */
export class SequenceContext {
  readonly objects: ObjectFactory;
  readonly environment: TestEnvironment;
  readonly record: CaseRecorder;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly #about: About;
  readonly #pace: ErrorPace;
  #agent = plainAgent;
  #state = emptyState;

  constructor({ about, environment, record, clock, signal }: SequenceContextOptions) {
    this.#about = about;
    this.#pace = new ErrorPace(environment, signal, clock);
    this.environment = environment;
    this.record = record;
    this.clock = clock;
    this.signal = signal;
    this.objects = new ObjectFactory(about.ipFamily, about.dataplane, about.isDualStack);
  }

  /** Control of the proxy, for cases with the need `controlProxy`. */
  get proxy(): ProxyControl {
    const { proxy } = this.environment;
    if (proxy === undefined) {
      throw new InvariantError(`${this.#about.id} controls the proxy and does not say that it needs to`);
    }
    return proxy;
  }

  /** Empties the cluster, and puts the first state. */
  async begin(change: Change, agent: ScenarioAgent = plainAgent): Promise<void> {
    this.#agent = agent;
    this.#state = emptyState;
    await this.environment.reset(agent, this.signal);
    await this.put(change);
  }

  /** Changes the cluster, and waits until the proxy has it. */
  async put(change: Change): Promise<void> {
    await this.#deliver(change, true);
  }

  /** Changes the cluster without waiting for the proxy. */
  async write(change: Change): Promise<void> {
    await this.#deliver(change, false);
  }

  async sleep(duration: number): Promise<void> {
    await this.clock.sleep(millis(duration), this.signal);
  }

  /** Starts the proxy and waits until it has what the cluster holds. */
  async startProxy(): Promise<Millis> {
    const at = await this.proxy.start();
    await this.proxy.settled(this.signal);
    return at;
  }

  /** Probes these flows side by side and records a check for each. */
  async see(...expected: readonly ExpectedFlow[]): Promise<void> {
    const seen = await Promise.all(
      expected.map(async ({ call, expect }) => {
        const at = this.flowAt(call, expect);
        return { at, look: await lookAt(at.flow, await this.connectorFor(call), this.#pace.limitsFor(at.flow)) };
      }),
    );
    for (const [index, { at, look }] of seen.entries()) {
      const one = expected[index];
      if (one === undefined) continue;
      const about = { id: one.id, what: flowText(at.flow) };
      if ('inconclusive' in look) this.record.inconclusive({ ...about, because: look.inconclusive });
      else this.record.check({ ...about, expected: expectationText(one.expect), ...look }, at);
    }
  }

  /** Checks the answer of a health check. A wrong answer only counts when it persists: the server is updated after the kernel. */
  async seeHealth(
    id: string,
    service: ScenarioService,
    answer: Pick<ScenarioHealthCheck, 'status' | 'localEndpoints'>,
  ): Promise<void> {
    const check: ScenarioHealthCheck = { service: service.name, ipFamily: this.objects.ipFamily, ...answer };
    const expected = healthText(check);
    const scenario = this.scenarioWith([service]);
    const until = this.clock.monotonic() + healthPatience;
    let observed = await this.environment.health(scenario, check, this.signal);
    while (observed !== expected && this.clock.monotonic() < until) {
      await this.clock.sleep(healthInterval, this.signal);
      observed = await this.environment.health(scenario, check, this.signal);
    }
    this.record.check({ id, what: healthStepText(check), expected, observed, because: [] });
  }

  /** The node's limits on ICMP errors for the sender of a call. */
  limitsFor(call: Call): ErrorLimits {
    return this.#pace.limitsFor(this.flowAt(call, { kind: 'pass' }).flow);
  }

  connectorFor(call: Call): Promise<FlowConnector> {
    const { scenario, flow } = this.flowAt(call, { kind: 'pass' });
    return this.environment.connectorFor(scenario, flow, this.signal);
  }

  /** A call as a flow of a scenario whose first state is the content of the cluster. */
  flowAt(call: Call, expect: Expectation): FlowAt {
    return {
      scenario: this.scenario,
      flow: (call.inOtherFamily === true ? this.objects.other : this.objects).flow(call, expect),
    };
  }

  get scenario(): Scenario {
    return this.scenarioWith([]);
  }

  /** The current scenario with these Services, even if the cluster has changed or removed them. */
  scenarioWith(others: readonly ScenarioService[]): Scenario {
    const services = new Map([...this.#state.services, ...others.map((one) => [one.name, one] as const)]);
    const { endpoints } = this.#state;
    return { ...momentScenario(this.objects, this.#about, this.#agent), services: [...services.values()], endpoints };
  }

  async #deliver({ services = [], without = [], endpoints, nodeAddress }: Change, wait: boolean): Promise<void> {
    const gone = new Set(without.map(({ name }) => name));
    const before = this.#state;
    const kept = [...before.services].filter(([name]) => !gone.has(name));
    this.#state = {
      ...before,
      services: new Map([...kept, ...services.map((one) => [one.name, one] as const)]),
      endpoints: (endpoints ?? before.endpoints).filter(({ service }) => !gone.has(service)),
      nodeAddress: nodeAddress === undefined ? before.nodeAddress : this.objects.address(nodeAddress),
    };
    await this.environment.put([{ scenario: this.scenario, state: this.#state }], { wait }, this.signal);
  }
}
