import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type IpAddress, type Millis, parseCidr, systemClock } from '@switchyard/core';
import {
  type ApiClient,
  clusterCidrs,
  createApiClient,
  createLab,
  type Lab,
  type LabProcess,
  listenInNamespace,
  serviceCidrs,
  startApiServer,
  startWorkloads,
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

const apiPort = 6443;

/** Builds a lab of two nodes and starts every program in it. Whatever was started is stopped again if one of them fails. */
export async function setStage(options: StageOptions, signal: AbortSignal): Promise<Stage> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await createLab({ name: options.name, nodes: 2, ipFamilies: ['IPv4'] }, signal));
  const { api, kubeconfig } = await startControlPlane(lab, stack, signal);
  const workloadEvents: WorkloadEvent[] = [];
  const onEvent = (event: WorkloadEvent): void => void workloadEvents.push(event);
  stack.use(await startWorkloads({ lab, api, timeScale: options.settings.timeScale, onEvent }, signal));
  const agents = new Map<string, LabProcess>();
  for (const node of lab.nodes) agents.set(node.name, startAgent(node, kubeconfig, options.settings));
  const loadBalancerAddress = lab.loadBalancer.addresses.IPv4;
  if (loadBalancerAddress === undefined) throw new Error('the lab gave its load balancer no IPv4 address');
  const eventLog = join(lab.folder, 'load-balancer-events.jsonl');
  writeFileSync(eventLog, '');
  const loadBalancer = startLoadBalancer(lab, {
    kubeconfig,
    eventLog,
    address: loadBalancerAddress,
    settings: options.settings,
  });
  const everything = stack.move();
  return {
    lab,
    api,
    agents,
    loadBalancer,
    eventLog,
    loadBalancerStartedAt: systemClock.now(),
    loadBalancerAddress,
    workloadEvents,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** The API server listens twice: inside the lab for its programs, on loopback for this process. */
async function startControlPlane(
  lab: Lab,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<{ readonly api: ApiClient; readonly kubeconfig: string }> {
  const server = stack.use(await startApiServer({ serviceCidrs: [parseCidr(serviceCidrs.IPv4)] }));
  const host = lab.apiServer.addresses.IPv4 ?? '';
  const socket = await listenInNamespace({ namespace: lab.apiServer.namespace, host, port: apiPort }, signal);
  await server.listen(socket);
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  const kubeconfig = join(lab.folder, 'kubeconfig');
  writeFileSync(kubeconfig, server.kubeconfig(`http://${host}:${apiPort}`), { mode: 0o600 });
  return { api: stack.use(createApiClient({ url, name: 'rollout' })), kubeconfig };
}

function startAgent(node: Lab['nodes'][number], kubeconfig: string, settings: RunSettings): LabProcess {
  return node.spawn(
    programPath('switchyard-agent'),
    [
      `--kubeconfig=${kubeconfig}`,
      `--hostname-override=${node.nodeName}`,
      '--proxy-mode=nftables',
      `--cluster-cidr=${clusterCidrs.IPv4}`,
      `--terminating-fallback=${settings.terminatingFallback ? 'on' : 'off'}`,
    ],
    { logName: `agent-${node.name}` },
  );
}

function startLoadBalancer(
  lab: Lab,
  options: {
    readonly kubeconfig: string;
    readonly eventLog: string;
    readonly address: IpAddress;
    readonly settings: RunSettings;
  },
): LabProcess {
  const { interval, fall, rise } = options.settings.healthCheck;
  return lab.loadBalancer.spawn(
    programPath('switchyard-lb'),
    [
      `--kubeconfig=${options.kubeconfig}`,
      `--address=${options.address}`,
      `--health-check-interval=${Math.round(interval)}ms`,
      `--health-check-fall=${fall}`,
      `--health-check-rise=${rise}`,
      `--event-log=${options.eventLog}`,
    ],
    { logName: 'load-balancer' },
  );
}
