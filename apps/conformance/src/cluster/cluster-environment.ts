import type { IpFamily } from '@switchyard/core';
import { markerRounds } from '../engine/marker-rounds.ts';
import { endpointPods, type Scenario, type ScenarioFlow, type ScenarioHealthCheck } from '@switchyard/scenarios';
import { healthPortOf, healthSeen } from '../lab/answers.ts';
import type { TestEnvironment, FlowConnector, ScenarioMoment } from '../model/test-environment.ts';
import type { Ability, ConformanceCase } from '../model/case.ts';
import type { ProxyUnderTest } from '../model/report-file.ts';
import type { NodePair } from './choose-nodes.ts';
import { connectInCluster, type ConnectorParts } from './cluster-connector.ts';
import type { WantedEndpoint } from './echo-pool.ts';
import type { Markers } from './marker.ts';
import type { ObjectWriter } from './object-writer.ts';
import { realName, realServices, realSlices, type Translation } from './real-objects.ts';
import { type ClusterTraits, scenarioObstacle, stepObstacleOnCluster } from './step-obstacles.ts';
import { callPod, tryCallPod } from './traffic-caller.ts';

/** Parts of a cluster environment. */
export interface ClusterEnvironmentParts {
  readonly proxyUnderTest: ProxyUnderTest;
  readonly ipFamilies: readonly IpFamily[];
  readonly nodes: NodePair;
  readonly traits: ClusterTraits;
  readonly place: ConnectorParts;
  readonly translation: Translation;
  readonly writer: ObjectWriter;
  readonly markers: Markers;
  readonly dispose: () => Promise<void>;
}

/** The environment on an existing cluster. */
export class ClusterEnvironment implements TestEnvironment {
  readonly target = 'cluster';
  readonly proxyUnderTest: ProxyUnderTest;
  readonly ipFamilies: readonly IpFamily[];
  /** From outside only NodePorts can be reached: `stepObstacle` excludes other steps of scenarios, `obstacle` sequences. */
  readonly can: ReadonlySet<Ability> = new Set(['sendFromOutside', 'holdConnections', 'load']);
  readonly proxy = undefined;
  readonly lab = undefined;
  readonly cluster = undefined;
  /** The nodes that stand for node1, which is under test, and node2. */
  readonly nodes: NodePair;
  readonly #parts: ClusterEnvironmentParts;
  #isDisposed = false;

  constructor(parts: ClusterEnvironmentParts) {
    this.#parts = parts;
    this.proxyUnderTest = parts.proxyUnderTest;
    this.ipFamilies = parts.ipFamilies;
    this.nodes = parts.nodes;
  }

  obstacle(one: ConformanceCase): string | undefined {
    if (one.kind === 'sequence') return sequenceObstacle(one.needs);
    return scenarioObstacle(one.scenario, this.#parts.traits);
  }

  readonly stepObstacle: TestEnvironment['stepObstacle'] = stepObstacleOnCluster;

  async reset(_agent: unknown, signal: AbortSignal): Promise<void> {
    const { place, writer } = this.#parts;
    await writer.writeServices([], signal);
    await writer.writeSlices([], signal);
    place.book.clear();
    place.pool.clear();
    await this.#settled(signal);
  }

  async put(
    moments: readonly ScenarioMoment[],
    { wait }: { readonly wait: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { writer, translation, place } = this.#parts;
    await place.pool.provide(
      moments.flatMap(({ scenario }) => endpointsOf(scenario)),
      signal,
    );
    await writer.writeServices(
      moments.flatMap((moment) => realServices(moment, translation)),
      signal,
    );
    await writer.writeSlices(
      moments.flatMap((moment) => realSlices(moment, translation)),
      signal,
    );
    if (wait) await this.#settled(signal);
  }

  connectorFor(_scenario: Scenario, flow: ScenarioFlow, signal: AbortSignal): Promise<FlowConnector> {
    return Promise.resolve(connectInCluster(flow, this.#parts.place, signal));
  }

  async health(scenario: Scenario, check: ScenarioHealthCheck, signal: AbortSignal): Promise<string> {
    const { caller, senders, book } = this.#parts.place;
    const port = book.healthPort(healthPortOf(scenario, check.service));
    if (port === undefined) return `the API server gave ${check.service} no healthCheckNodePort`;
    const probe = { protocol: 'http', address: book.nodeAddress(check.ipFamily), port } as const;
    const { results } = await callPod(
      caller,
      senders.outside,
      { name: 'probe', argument: { probes: [probe] } },
      signal,
    );
    const [result] = results;
    const real = { ...check, service: `${caller.namespace}/${realName(check.service)}` };
    return result === undefined ? 'no result' : healthSeen(result, real);
  }

  /** Reads the counters by the pod on the node's own network. An image of an older version does not know the call. */
  async icmpErrorsHeldBack(signal: AbortSignal): Promise<number | undefined> {
    const { caller, senders } = this.#parts.place;
    const outcome = await tryCallPod(caller, senders.node, { name: 'icmpErrors', argument: {} }, signal);
    return outcome.status === 'done' ? outcome.result.heldBack : undefined;
  }

  trace(): Promise<readonly string[]> {
    return Promise.resolve(["not followed: the kernel of a cluster's node is not looked into"]);
  }

  async #settled(signal: AbortSignal): Promise<void> {
    const rounds = markerRounds(this.proxyUnderTest.dataplane);
    for (let round = 0; round < rounds; round++) await this.#parts.markers.pass(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It has two owners; the second disposal would only repeat the messages of the first.
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    await this.#parts.dispose();
  }
}

/** Endpoints of all states: a pod that is not an endpoint now must still answer, so that a wrong packet shows. */
function endpointsOf(scenario: Scenario): readonly WantedEndpoint[] {
  return [...endpointPods(scenario)].map(([address, { node, ports }]) => ({ address, node, ports }));
}

/** Reason why a cluster cannot run a sequence: sequences send from outside to any address. */
function sequenceObstacle(needs: readonly Ability[]): string | undefined {
  return needs.includes('sendFromOutside') ? "it sends from outside to more than the node's own address" : undefined;
}
