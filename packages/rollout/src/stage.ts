import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type IpAddress, type Millis, parseIp, systemClock } from '@switchyard/core';
import {
  type ApiClient,
  type Lab,
  type LabCluster,
  type LabProcess,
  startCluster,
  type WorkloadEvent,
} from '@switchyard/lab';
import { programPath } from './programs.ts';
import type { RunSettings } from './run-record.ts';

/** Everything that plays in one run: the lab, the cluster's brain, an agent per node, the load balancer. */
export interface Stage extends AsyncDisposable {
  readonly lab: Lab;
  readonly api: ApiClient;
  readonly agents: ReadonlyMap<string, LabProcess>;
  readonly loadBalancer: LabProcess;
  /** HAProxy's server states, one JSON line each. */
  readonly eventLog: string;
  readonly loadBalancerStartedAt: Millis;
  readonly loadBalancerAddress: IpAddress;
  readonly workloadEvents: readonly WorkloadEvent[];
}

/** How to set the stage. */
export interface StageOptions {
  /** Name of the lab. */
  readonly name: string;
  readonly settings: RunSettings;
}

/** Builds a lab of two nodes and starts every program in it. Whatever was started is stopped again if one of them fails. */
export async function setStage(options: StageOptions, signal: AbortSignal): Promise<Stage> {
  const { settings } = options;
  const agentProgram = programPath('switchyard-agent');
  const loadBalancerProgram = programPath('switchyard-lb');
  await using stack = new AsyncDisposableStack();
  const workloadEvents: WorkloadEvent[] = [];
  const cluster = stack.use(
    await startCluster(
      {
        name: options.name,
        nodes: 2,
        ipFamilies: ['IPv4'],
        timeScale: settings.timeScale,
        onWorkloadEvent: (event) => void workloadEvents.push(event),
      },
      signal,
    ),
  );
  const fallback = settings.terminatingFallback ? 'on' : 'off';
  const args = [
    `--proxy-mode=${settings.proxyMode}`,
    `--switchyard-terminating-fallback=${fallback}`,
    // The iptables mode's default is a second, which is a duration like the others.
    ...(settings.proxyMode === 'iptables'
      ? [`--iptables-min-sync-period=${Math.round(1000 * settings.timeScale)}ms`]
      : []),
  ];
  const started = await cluster.startAgents({ args, program: agentProgram }, signal);
  const agents = new Map(started.map((agent, index) => [cluster.lab.nodes[index]?.name ?? '', agent]));
  const eventLog = join(cluster.lab.folder, 'load-balancer-events.jsonl');
  writeFileSync(eventLog, '');
  const loadBalancerAddress = parseIp(cluster.lab.loadBalancer.addresses.IPv4 ?? '');
  const loadBalancerStartedAt = systemClock.now();
  const loadBalancer = cluster.lab.loadBalancer.spawn(
    loadBalancerProgram,
    loadBalancerArgs(cluster, { eventLog, address: loadBalancerAddress, settings }),
    { logName: 'load-balancer' },
  );
  const everything = stack.move();
  return {
    lab: cluster.lab,
    api: cluster.api,
    agents,
    loadBalancer,
    eventLog,
    loadBalancerStartedAt,
    loadBalancerAddress,
    workloadEvents,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

function loadBalancerArgs(
  cluster: LabCluster,
  options: { readonly eventLog: string; readonly address: IpAddress; readonly settings: RunSettings },
): readonly string[] {
  const { interval, fall, rise } = options.settings.healthCheck;
  return [
    `--kubeconfig=${cluster.insideKubeconfig}`,
    `--address=${options.address}`,
    `--health-check-interval=${Math.round(interval)}ms`,
    `--health-check-fall=${fall}`,
    `--health-check-rise=${rise}`,
    `--event-log=${options.eventLog}`,
  ];
}
