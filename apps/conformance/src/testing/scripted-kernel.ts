import { explain, type IpAddress, ipFamilyOf, type Random, type ServiceKey } from '@switchyard/core';
import {
  coreFlow,
  healthText,
  type Scenario,
  type ScenarioFlow,
  type ScenarioHealthCheck,
  emptyState,
  type ScenarioState,
  ScenarioTables,
  sourceOf,
  type TablesByFamily,
} from '@switchyard/scenarios';
import type { Seen } from '../model/test-environment.ts';
import type { ScriptedProxy } from './scripted-proxy.ts';

/** Treats packets as a kernel would, by core's own tables, and remembers clients. */
export class ScriptedKernel {
  readonly #proxy: ScriptedProxy;
  readonly #random: Random;
  readonly #now: () => number;
  readonly #flows = new Map<string, IpAddress>();
  readonly #clients = new Map<string, { readonly endpoint: IpAddress; readonly at: number }>();
  #state = emptyState;
  #scenario: Scenario | undefined;
  #tables: TablesByFamily = new Map();

  constructor(proxy: ScriptedProxy, random: Random, now: () => number) {
    this.#proxy = proxy;
    this.#random = random;
    this.#now = now;
  }

  get state(): ScenarioState {
    return this.#state;
  }

  hold(scenario: Scenario, state: ScenarioState): void {
    this.#scenario = scenario;
    this.#state = state;
    this.#tables = new ScenarioTables(scenario).update(state);
  }

  /** One attempt. */
  send(flow: ScenarioFlow): Seen {
    const verdict = this.#verdict(flow);
    const to = verdict.kind === 'forward' ? verdict.endpoints : [];
    const client = `${sourceOf(flow)} ${flow.sourcePort} ${flow.to} ${flow.port} ${flow.protocol}`;
    const stale = flow.sourcePort === undefined ? undefined : this.#flows.get(client);
    if (stale !== undefined && this.#isLeft(stale, to)) return this.#endpoint(stale, flow, false);
    if (verdict.kind === 'pass') this.#flows.set(client, flow.to);
    if (verdict.kind !== 'forward') return { kind: verdict.kind === 'drop' ? 'timeout' : 'refused' };
    const { address } = this.#choose(flow, to);
    this.#flows.set(client, address);
    return this.#endpoint(address, flow, verdict.masquerade);
  }

  health(check: ScenarioHealthCheck): string {
    const found = this.#tables.get(check.ipFamily)?.healthChecks.get(check.service as ServiceKey);
    if (found === undefined) return healthText({ status: 'closed', localEndpoints: undefined });
    const { localReadyEndpoints } = found;
    return healthText({ status: localReadyEndpoints > 0 ? 200 : 503, localEndpoints: localReadyEndpoints });
  }

  #verdict(flow: ScenarioFlow): ReturnType<typeof explain>['verdict'] {
    const table = this.#tables.get(ipFamilyOf(flow.to));
    if (table === undefined || this.#scenario === undefined) return { kind: 'pass' };
    return explain(table, coreFlow(this.#scenario, flow), this.#scenario.dataplane).verdict;
  }

  #isLeft(endpoint: IpAddress, to: readonly { readonly address: IpAddress }[]): boolean {
    const isServing = this.#state.endpoints.some(({ ip, serving }) => ip === endpoint && serving !== false);
    if (to.some(({ address }) => address === endpoint) || (isServing && this.#proxy.leavesServing)) return true;
    const { staleFlows } = this.#proxy;
    return staleFlows === 'all' || (staleFlows === 'without endpoints' && to.length === 0);
  }

  #choose(
    flow: ScenarioFlow,
    to: readonly { readonly address: IpAddress; readonly port: number }[],
  ): { readonly address: IpAddress } {
    const chosen = to[Math.floor(this.#random() * to.length)] ?? { address: flow.to };
    const timeout = this.#affinityOf(flow);
    if (timeout === undefined || this.#proxy.affinity === 'none') return chosen;
    const key = `${sourceOf(flow)} ${flow.to} ${flow.port}`;
    const known = this.#clients.get(key);
    const isKept =
      known !== undefined && (this.#proxy.affinity === 'for ever' || this.#now() - known.at < timeout * 1000);
    const address = isKept ? known.endpoint : chosen.address;
    const at = isKept && this.#proxy.affinity === 'from the first visit' ? known.at : this.#now();
    this.#clients.set(key, { endpoint: address, at });
    return { address };
  }

  #affinityOf({ to, port }: ScenarioFlow): number | undefined {
    const services = [...this.#state.services.values()];
    const found = services.find(
      ({ clusterIP, ports }) => clusterIP === to || ports.some(({ nodePort }) => nodePort === port),
    );
    return found?.sessionAffinityTimeoutSeconds;
  }

  #endpoint(address: IpAddress, flow: ScenarioFlow, isMasqueraded: boolean): Seen {
    return { kind: 'endpoint', address, port: 8080, isMasqueraded, isSender: address === flow.fromEndpoint };
  }
}
