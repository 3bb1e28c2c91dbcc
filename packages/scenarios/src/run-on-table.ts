import {
  buildTable,
  ClusterState,
  type ClusterEvent,
  explain,
  type Flow,
  type ForwardingTable,
  type IpAddress,
  nodeName,
  parseCidr,
  parseIp,
  type ServiceKey,
  type TableOptions,
} from '@switchyard/core';
import { projections, type RawObjects } from '@switchyard/core/kubernetes';
import { type ClusterObject, clusterObjects, nodeAddresses } from './cluster-objects.ts';
import type { Scenario, ScenarioFlow, ScenarioHealthCheck } from './scenario.ts';
import { firstState, nextState, type ScenarioState } from './scenario-state.ts';
import { type AltitudeResult, expectationText, flowText, healthText, type StepResult, verdictText } from './verdict.ts';

const clusterCidrs = { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/48' } as const;
const outsideAddresses = { IPv4: '172.18.0.100', IPv6: 'fd00:172:18::100' } as const;
const clientPodAddresses = { IPv4: '10.244.1.250', IPv6: 'fd00:10:244:1::250' } as const;

/** The table options that correspond to the scenario's agent flags. */
export function tableOptionsOf(scenario: Scenario): TableOptions {
  const { agent, ipFamily } = scenario;
  const all = ipFamily === 'IPv4' ? '0.0.0.0/0' : '::/0';
  const nodePortCidrs = agent.nodePortAddresses.length === 0 ? [all] : agent.nodePortAddresses;
  return {
    ipFamily,
    nodeName: nodeName('node1'),
    masqueradeAll: agent.masqueradeAll,
    terminatingFallback: agent.terminatingFallback,
    podDetector: agent.detectsPods ? { kind: 'cidr', cidr: parseCidr(clusterCidrs[ipFamily]) } : { kind: 'none' },
    nodePortCidrs: nodePortCidrs.map(parseCidr),
  };
}

/** The address a flow comes from. */
export function sourceOf(scenario: Scenario, flow: ScenarioFlow): IpAddress {
  if (flow.fromEndpoint !== undefined) return flow.fromEndpoint;
  if (flow.from === 'outside') return parseIp(outsideAddresses[scenario.ipFamily]);
  if (flow.from === 'pod') return parseIp(clientPodAddresses[scenario.ipFamily]);
  return parseIp(nodeAddresses[scenario.ipFamily]['node1'] ?? '');
}

/** The scenario's flow as the oracle and the tracers take it. Without a pod detector a pod is `outside`. */
export function coreFlow(scenario: Scenario, flow: ScenarioFlow): Flow {
  return {
    from: flow.from === 'pod' && !scenario.agent.detectsPods ? 'outside' : flow.from,
    source: sourceOf(scenario, flow),
    destination: flow.to,
    destinationPort: flow.port,
    protocol: flow.protocol,
    destinationIsLocal: flow.to === nodeAddresses[scenario.ipFamily]['node1'],
  };
}

/** Feeds scenario states to the real projections, state and table builder, incrementally. */
export class ScenarioTables {
  readonly #scenario: Scenario;
  readonly #state = new ClusterState({ nodeName: nodeName('node1') });
  #table: ForwardingTable | undefined;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
  }

  /** The table for a state of the scenario; built from its predecessor as the agent would. */
  update(state: ScenarioState): ForwardingTable {
    const dirty = this.#state.apply(replaceEvents(clusterObjects(this.#scenario, state)));
    const scope: 'all' | ReadonlySet<ServiceKey> = dirty.everything ? 'all' : dirty.services;
    this.#table = buildTable(this.#state, scope, this.#table, tableOptionsOf(this.#scenario));
    return this.#table;
  }
}

function replaceEvents(objects: readonly ClusterObject[]): readonly ClusterEvent[] {
  const items = <K extends keyof RawObjects>(kind: K): readonly never[] =>
    objects
      .filter((object) => object.kind === kind)
      .flatMap((object) => {
        const projected = projections[kind](object as unknown as RawObjects[K]);
        return projected.status === 'record' ? [projected.record as never] : [];
      });
  return (['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'] as const).map(
    (resource) => ({ kind: 'replace', resource, items: items(resource) }) as ClusterEvent,
  );
}

/** Altitude 1: asks the oracle about every flow. Milliseconds; needs nothing. */
export function runOnTable(scenario: Scenario): AltitudeResult {
  const tables = new ScenarioTables(scenario);
  let state = firstState(scenario);
  let table = tables.update(state);
  const steps: StepResult[] = [];
  for (const step of scenario.steps) {
    const next = nextState(state, step);
    if (next !== state) table = tables.update(next);
    state = next;
    if (step.kind === 'flow') steps.push(flowResult(scenario, table, step));
    if (step.kind === 'healthCheck') steps.push(healthResult(table, step));
  }
  return { altitude: 'table', steps };
}

function flowResult(
  scenario: Scenario,
  table: ForwardingTable,
  { flow, line }: { readonly flow: ScenarioFlow; readonly line: number },
): StepResult {
  const explanation = explain(table, coreFlow(scenario, flow));
  const expected = expectationText(flow.expect);
  const observed = hairpinText(verdictText(explanation.verdict), flow);
  const because = explanation.reasons.map((reason) => reason.text);
  return { line, step: flowText(flow), expected, observed, isAsExpected: expected === observed, because };
}

/** The oracle leaves hairpin to the backend: a pod that reaches itself is always masqueraded. */
function hairpinText(observed: string, flow: ScenarioFlow): string {
  const reachesItself = flow.fromEndpoint !== undefined && observed === `forward to ${flow.fromEndpoint}`;
  return reachesItself ? `${observed}, masqueraded` : observed;
}

function healthResult(
  table: ForwardingTable,
  { check, line }: { readonly check: ScenarioHealthCheck; readonly line: number },
): StepResult {
  const found = table.healthChecks.get(check.service as ServiceKey);
  const observed =
    found === undefined
      ? healthText({ status: 'closed', localEndpoints: undefined })
      : healthText({ status: found.localReadyEndpoints > 0 ? 200 : 503, localEndpoints: found.localReadyEndpoints });
  const expected = healthText(check);
  return {
    line,
    step: `health check of ${check.service}`,
    expected,
    observed,
    isAsExpected: expected === observed,
    because: [],
  };
}
