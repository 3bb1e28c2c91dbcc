import { compareIps, InvariantError, ipFamilies, millis, systemClock } from '@switchyard/core';
import type { Clock, IpFamily } from '@switchyard/core';
import type { Expectation, Scenario, ScenarioAgent, ScenarioEndpoint, ScenarioFlow } from '@switchyard/scenarios';
import { type DataplaneName, emptyState, plainAgent, type ScenarioHealthCheck } from '@switchyard/scenarios';
import { expectationText, flowText, healthStepText, healthText, observationText } from '@switchyard/scenarios';
import type { ScenarioService } from '@switchyard/scenarios';
import { ErrorPace } from '../../../engine/error-pace.ts';
import { withoutProcessor } from '../../../engine/evidence.ts';
import { countText, type ErrorLimits, probeFlow, seenText } from '../../../engine/probe-flow.ts';
import { lackText } from '../../../engine/run-round.ts';
import { healthOnceRight } from '../../../engine/run-scenario.ts';
import type { Ability, CatalogueOptions, SequenceCase } from '../../../model/case.ts';
import type { CaseRecorder, FlowAt, FlowConnector } from '../../../model/test-environment.ts';
import type { ProxyControl, Seen, TestEnvironment } from '../../../model/test-environment.ts';
import { type Call, ObjectFactory, momentScenario, type PodName, type ServiceOptions } from './object-factory.ts';

/** Definition of a sequence, for all families and dataplanes. */
export interface Sequence {
  /** Middle part of the case's id. */
  readonly name: string;
  readonly title: string;
  readonly why: string;
  /** Tags after `sequence`. */
  readonly tags: readonly string[];
  readonly needs: readonly Ability[];
  /** `each`: once per family. `dual`: once, in a cluster with both. Default `each`. */
  readonly families?: 'each' | 'dual';
  /** Reason why it is not for a dataplane. Default: it is for all. */
  notFor?(dataplane: DataplaneName): string | undefined;
  run(context: SequenceContext): Promise<void>;
}

/** Returns the cases of a sequence: one per family, or one for both. */
export function casesOf(
  sequence: Sequence,
  { dataplane }: Pick<CatalogueOptions, 'dataplane'>,
  clock: Clock = systemClock,
): readonly SequenceCase[] {
  const { name, title, why, tags, needs } = sequence;
  const isDualStack = sequence.families === 'dual';
  const one = (ipFamily: IpFamily): SequenceCase => {
    const id = `sequence/${name}/${isDualStack ? 'dual' : ipFamily.toLowerCase()}`;
    const about = { id, title, why, ipFamily, isDualStack, dataplane };
    return {
      kind: 'sequence',
      id,
      title,
      why,
      tags: ['sequence', ...tags],
      families: isDualStack ? 'dual' : ipFamily,
      needs,
      notFor: sequence.notFor?.(dataplane),
      run: (environment, record, signal) =>
        sequence.run(new SequenceContext({ about, environment, record, clock, signal })),
    };
  };
  return isDualStack ? [one('IPv4')] : ipFamilies.map(one);
}

interface SequenceRun {
  readonly about: {
    readonly id: string;
    readonly title: string;
    readonly why: string;
    /** Family of the first addresses of a Service. */
    readonly ipFamily: IpFamily;
    readonly isDualStack: boolean;
    readonly dataplane: DataplaneName;
  };
  readonly environment: TestEnvironment;
  readonly record: CaseRecorder;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Change of the cluster's content. Absent fields stay as they are. */
interface Change {
  /** Services to put; others stay. */
  readonly services?: readonly ScenarioService[];
  /** Services to remove, with their endpoints. */
  readonly without?: readonly ScenarioService[];
  /** All endpoints of all Services from now on. */
  readonly endpoints?: readonly ScenarioEndpoint[];
  /** Address in node1's Node object: an IPv4 address of the plan. */
  readonly nodeAddress?: string;
}

/** A check's id, the call, and what must happen. */
export type ExpectedCall = readonly [id: string, call: Call, expect: Expectation];

/** A running sequence: the content of the cluster, and helpers that change it and record checks. */
export class SequenceContext {
  readonly objects: ObjectFactory;
  readonly record: CaseRecorder;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly #environment: TestEnvironment;
  readonly #about: SequenceRun['about'];
  readonly #pace: ErrorPace;
  #agent = plainAgent;
  #state = emptyState;
  /** Services of all states since `begin`. */
  #known: readonly ScenarioService[] = [];

  constructor({ about, environment, record, clock, signal }: SequenceRun) {
    this.#about = about;
    this.#pace = new ErrorPace(environment, signal, clock);
    this.#environment = environment;
    this.record = record;
    this.clock = clock;
    this.signal = signal;
    this.objects = new ObjectFactory(about.ipFamily, about.dataplane, about.isDualStack);
  }

  get proxy(): ProxyControl {
    const { proxy } = this.#environment;
    if (proxy !== undefined) return proxy;
    throw new InvariantError(`${this.#about.id} controls the proxy and does not say that it needs to`);
  }

  /** Why the machine, and not the proxy, may be slow now; undefined: it is not, or that is not known. */
  async whySlow(): Promise<string | undefined> {
    return withoutProcessor(await this.#environment.processorShare?.(this.signal));
  }

  /** Whether the environment has an ability. If not, records checks that need it as skipped. */
  hasAbility(ability: Ability, ids: readonly string[]): boolean {
    if (this.#environment.can.has(ability)) return true;
    const because = lackText(this.#environment, [ability]);
    for (const id of ids) this.record.skip({ id, because });
    return false;
  }

  get lab(): TestEnvironment['lab'] {
    return this.#environment.lab;
  }

  /** Empties the cluster, and puts the first state. */
  async begin(change: Change, agent: ScenarioAgent = plainAgent): Promise<void> {
    this.#agent = agent;
    this.#state = emptyState;
    this.#known = [];
    await this.#environment.reset(agent, this.signal);
    await this.put(change);
  }

  /** Begins with one Service that has these endpoints. */
  async serve(options: ServiceOptions, ...pods: readonly PodName[]): Promise<ScenarioService> {
    const service = this.objects.service(options);
    await this.begin({ services: [service], endpoints: this.objects.endpoints(service, ...pods) });
    return service;
  }

  /** Changes the cluster, and waits until the proxy has it. */
  put(change: Change): Promise<void> {
    return this.#deliver(change, true);
  }

  /** Changes the cluster without waiting for the proxy. */
  write(change: Change): Promise<void> {
    return this.#deliver(change, false);
  }

  async sleep(duration: number): Promise<void> {
    await this.clock.sleep(millis(duration), this.signal);
  }

  /** Starts the proxy and waits until it has what the cluster holds. */
  async startProxy(): Promise<void> {
    await this.proxy.start();
    await this.proxy.settled(this.signal);
  }

  /** Probes flows side by side and records a check for each: its id, the call and what must happen. */
  async see(...expected: readonly ExpectedCall[]): Promise<void> {
    const possible = this.possible(expected, ([id, call]) => ({ id, call }));
    const seen = await Promise.all(
      possible.map(async ([id, call, expect]) => {
        const at = this.flowAt(call, expect);
        return { id, at, look: await lookAt(at.flow, await this.connectorFor(call), this.#pace.limitsFor(at.flow)) };
      }),
    );
    for (const { id, at, look } of seen) {
      const about = { id, what: flowText(at.flow) };
      if ('inconclusive' in look) this.record.inconclusive({ ...about, because: look.inconclusive });
      else this.record.check({ ...about, expected: expectationText(at.flow.expect), ...look }, at);
    }
  }

  /** Checks the answer of a health check. A wrong answer only counts when it persists: the server is updated after the kernel. */
  async seeHealth(id: string, service: ScenarioService, status: 200 | 503 | 'closed', local?: number): Promise<void> {
    const check: ScenarioHealthCheck = {
      service: service.name,
      ipFamily: this.objects.ipFamily,
      status,
      localEndpoints: local,
    };
    const wait = { clock: this.clock, patience: healthPatience };
    const observed = await healthOnceRight(
      this.#environment,
      { scenario: this.#scenario([service]), check },
      wait,
      this.signal,
    );
    this.record.check({ id, what: healthStepText(check), expected: healthText(check), observed, because: [] });
  }

  /** Those whose calls this environment can make. Records the checks of the others as skipped. */
  possible<T>(all: readonly T[], of: (one: T) => { readonly id: string; readonly call: Call }): readonly T[] {
    return all.filter((one) => {
      const { id, call } = of(one);
      const because = this.obstacleOf(call);
      if (because !== undefined) this.record.skip({ id, because });
      return because === undefined;
    });
  }

  /** Reason why this environment cannot make a call; undefined: it can. */
  obstacleOf(call: Call): string | undefined {
    const { scenario, flow } = this.flowAt(call);
    const everything = { ...scenario, services: this.#known };
    return this.#environment.stepObstacle(everything, { kind: 'flow', flow, line: 1 });
  }

  /**
   * Makes the addresses of Services known, which the API server of a cluster chooses: puts the Services and removes them. In a lab they
   * are known.
   */
  async allocate(services: readonly ScenarioService[]): Promise<void> {
    if (this.#environment.target === 'lab') return;
    await this.put({ services });
    await this.put({ without: services });
  }

  limitsFor(call: Call): ErrorLimits {
    return this.#pace.limitsFor(this.flowAt(call).flow);
  }

  connectorFor(call: Call): Promise<FlowConnector> {
    const { scenario, flow } = this.flowAt(call);
    return this.#environment.connectorFor(scenario, flow, this.signal);
  }

  /** A call as a flow of a scenario whose first state is the content of the cluster. */
  flowAt(call: Call, expect: Expectation = { kind: 'pass' }): FlowAt {
    const objects = call.inOtherFamily === true ? this.objects.other : this.objects;
    return { scenario: this.#scenario(), flow: objects.flow(call, expect) };
  }

  /** The current scenario with these Services, even if the cluster has changed or removed them. */
  #scenario(others: readonly ScenarioService[] = []): Scenario {
    const services = new Map([...this.#state.services, ...others.map((one) => [one.name, one] as const)]);
    const { endpoints } = this.#state;
    return { ...momentScenario(this.objects, this.#about, this.#agent), services: [...services.values()], endpoints };
  }

  async #deliver({ services = [], without = [], endpoints, nodeAddress }: Change, wait: boolean): Promise<void> {
    const gone = new Set(without.map(({ name }) => name));
    this.#known = [...this.#known, ...services];
    const before = this.#state;
    const kept = [...before.services].filter(([name]) => !gone.has(name));
    this.#state = {
      ...before,
      services: new Map([...kept, ...services.map((one) => [one.name, one] as const)]),
      endpoints: (endpoints ?? before.endpoints).filter(({ service }) => !gone.has(service)),
      nodeAddress: nodeAddress === undefined ? before.nodeAddress : this.objects.address(nodeAddress),
    };
    await this.#environment.put([{ scenario: this.#scenario(), state: this.#state }], { wait }, this.signal);
  }
}

const healthPatience = millis(1500);

/** Result of some attempts, in words that are equal for equal outcomes. */
interface Look {
  readonly observed: string;
  readonly because: readonly string[];
}

/** Makes attempts until it is clear whether exactly the expected thing happens, or returns why that cannot be decided. */
async function lookAt(
  flow: ScenarioFlow,
  connector: Pick<FlowConnector, 'attempts'>,
  limits: ErrorLimits,
): Promise<Look | { readonly inconclusive: string }> {
  const all: Seen[] = [];
  const attempts = async (count: number): Promise<readonly Seen[]> => {
    const more = await connector.attempts(count);
    all.push(...more);
    return more;
  };
  const seen = await probeFlow(flow.expect, attempts, limits);
  if (seen.status === 'inconclusive') return { inconclusive: seen.because };
  const observed = seen.status === 'observed' ? observationText(seen.observation, flow) : mixedText(all, flow);
  return { observed, because: [countText(all)] };
}

/** Each answer once, endpoints first. */
function mixedText(seen: readonly Seen[], flow: ScenarioFlow): string {
  const endpoints = seen.filter((one) => one.kind === 'endpoint').toSorted((a, b) => compareIps(a.address, b.address));
  const others = seen.filter((one) => one.kind !== 'endpoint').map((one) => seenText(one));
  const isOneKind = new Set(endpoints.map(({ isMasqueraded }) => isMasqueraded)).size === 1;
  const [first] = endpoints;
  const texts =
    first === undefined || !isOneKind
      ? endpoints.map((one) => seenText(one))
      : [observationText({ kind: 'forward', to: endpoints, masquerade: first.isMasqueraded }, flow)];
  return [...new Set([...texts, ...others.toSorted()])].join(' and ');
}
