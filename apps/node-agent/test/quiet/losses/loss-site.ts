import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ipFamilies, type IpFamily } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import type { Loss } from '@switchyard/drops';
import {
  type AgentMode,
  clusterCidrs,
  createProber,
  type LabCluster,
  type LabHost,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  startCluster,
  startEchoServer,
} from '@switchyard/lab';
import { until } from '../../privileged/agent-log.ts';

/** A line of `/debug/losses?format=json`. */
export type LossLine = Loss & { readonly time: string; readonly node: string };

export const protocols = ['TCP', 'UDP'] as const;
export type ProbedProtocol = (typeof protocols)[number];

/** One endpoint of a Service under test. Default: a ready one on the first node. */
export interface GivenEndpoint {
  readonly address: string;
  readonly node?: LabNode;
  readonly conditions?: { readonly ready: boolean; readonly serving?: boolean; readonly terminating?: boolean };
}

/** A Service under test. */
export interface GivenService {
  readonly name: string;
  readonly ipFamily: IpFamily;
  readonly endpoints: readonly GivenEndpoint[];
  /** Port of the endpoints: a different one for each Service, because packets of the ebpf mode show their Service by it. */
  readonly targetPort: number;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly ingressIp?: string;
}

/** Addresses of a Service as the API server allocated them. */
export interface MadeService {
  readonly clusterIp: string;
  readonly nodePorts: Readonly<Record<ProbedProtocol, number>>;
}

/** Two nodes with agents, pods on both, and the losses that the first one's agent reports. */
export interface LossSite extends AsyncDisposable {
  readonly cluster: LabCluster;
  readonly node: LabNode;
  readonly otherNode: LabNode;
  /** Pod on `node`; listens on `echoPorts`, TCP and UDP. */
  readonly server: LabPod;
  /** The same on `otherNode`. */
  readonly remote: LabPod;
  readonly callerPod: LabPod;
  /** Sends from a pod of `node`. */
  readonly caller: Prober;
  /** Sends from `node` itself. */
  readonly onNode: Prober;
  /** Sends from outside of the cluster. */
  readonly outside: Prober;
  /** Resolves when the node has applied it. */
  make(service: GivenService): Promise<MadeService>;
  /** Resolves when the proxy has applied what the API has. */
  settled(): Promise<void>;
  /** Stops the first node's proxy where it is; its rules stay. */
  pauseProxy(): void;
  resumeProxy(): void;
  /** Makes another address the only endpoint of a Service. Resolves when the loss endpoint knows. */
  replaceEndpoint(service: string, address: string): Promise<void>;
  /** All lines so far. */
  losses(): Promise<readonly LossLine[]>;
  /** Answer of `/debug/why` with probes from a pod of the node, over TCP. */
  why(from: LabPod, to: string, probes: number): Promise<WhyReply>;
  /** Runs a shell command; throws for another exit than 0. */
  shell(host: LabHost, command: string): Promise<string>;
}

/** What `/debug/why?format=json` answers. */
export interface WhyReply {
  readonly verdict: string;
  readonly why: string;
  readonly certainty: string;
  readonly losses: readonly Loss[];
}

export const echoPorts: readonly number[] = Array.from({ length: 80 }, (_, index) => 8100 + index);

/** A proxy whose losses are explained: an agent in one of its modes, or another program with an observer beside it. */
export interface ObservedProxy {
  readonly name: string;
  readonly mode: AgentMode;
  /** Port of the loss endpoint on each node. */
  readonly port: number;
  /** Ports where agents of the node answer: a Service is made when all of them have it. */
  readonly agentPorts: readonly number[];
  /** Time in milliseconds within which a refusal may be the proxy's, because it may not have applied a Service yet. */
  readonly lag: number;
  /** Whether the proxy needs this time, and the table of the loss endpoint is ahead of it. */
  readonly isSlow: boolean;
  /** Resolves with the proxy of the first node. */
  readonly start: (cluster: LabCluster, signal: AbortSignal) => Promise<LabProcess>;
  readonly isObserved: boolean;
}

const agentPort = 10_249;
const observerPort = 10_239;

/** The agents of both nodes. */
export function ownProxy(mode: AgentMode): ObservedProxy {
  const start: ObservedProxy['start'] = (cluster, signal) => startAgents(cluster, mode, signal);
  return {
    name: mode,
    mode,
    port: agentPort,
    agentPorts: [agentPort],
    lag: 0,
    isSlow: false,
    isObserved: false,
    start,
  };
}

async function startAgents(cluster: LabCluster, mode: AgentMode, signal: AbortSignal): Promise<LabProcess> {
  const [first] = await cluster.startAgents({ proxyMode: mode }, signal);
  return first as LabProcess; // there are nodes
}

function startObserver(cluster: LabCluster, proxyMode: AgentMode): void {
  const [node] = cluster.lab.nodes;
  if (node !== undefined) cluster.startAgent(node, { proxyMode, args: ['--switchyard-observe'] });
}

/** An observer beside the agents, which stand for any proxy with the answers of their mode. */
export function observedProxy(mode: AgentMode): ObservedProxy {
  const start: ObservedProxy['start'] = async (cluster, signal) => {
    const agent = await startAgents(cluster, mode, signal);
    startObserver(cluster, mode);
    return agent;
  };
  const agentPorts = [agentPort, observerPort];
  const name = `${mode}-observed`;
  return { name, mode, port: observerPort, agentPorts, lag: 3_200, isSlow: false, isObserved: true, start };
}

/** A command with its arguments, such as the program that `node tools/kube-proxy/build.ts` prints. */
export type KubeProxyCommand = readonly [program: string, ...args: string[]];

/** An observer beside a real kube-proxy. */
export function realKubeProxy([program, ...more]: KubeProxyCommand, mode: 'iptables' | 'nftables'): ObservedProxy {
  const start: ObservedProxy['start'] = async (cluster) => {
    const [first] = cluster.lab.nodes.map((node) => {
      const args = [
        `--kubeconfig=${cluster.insideKubeconfig}`,
        `--hostname-override=${node.nodeName}`,
        `--proxy-mode=${mode}`,
        `--cluster-cidr=${Object.values(clusterCidrs).join(',')}`,
        '--conntrack-max-per-core=0',
        '--conntrack-min=0',
        '--oom-score-adj=0',
        ...more,
      ];
      return node.spawn(program, args, { logName: 'kube-proxy' });
    });
    startObserver(cluster, mode);
    return first as LabProcess; // there are nodes
  };
  const agentPorts = [observerPort];
  const name = `kube-proxy-${mode}`;
  return { name, mode, port: observerPort, agentPorts, lag: 3_200, isSlow: true, isObserved: true, start };
}

export async function openLossSite(proxy: ObservedProxy, signal: AbortSignal): Promise<LossSite> {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(
    await startCluster(
      { name: `l${proxy.name.replaceAll(/[^a-z]/g, '').slice(0, 3)}${proxy.port % 100}`, nodes: 2, ipFamilies },
      signal,
    ),
  );
  const { lab } = cluster;
  const [node, otherNode] = lab.nodes as [LabNode, LabNode];
  const [server, remote, callerPod] = [
    await lab.addPod(node, 'server'),
    await lab.addPod(otherNode, 'remote'),
    await lab.addPod(node, 'caller'),
  ];
  for (const pod of [server, remote]) startEchoServer(pod, { pod: pod.name, tcp: echoPorts, udp: echoPorts });
  const caller = stack.use(await createProber(callerPod, signal));
  const onNode = stack.use(await createProber(node, signal));
  const outside = stack.use(await createProber(lab.client, signal));
  const running = await proxy.start(cluster, signal);
  stack.defer(() => void process.kill(running.pid, 'SIGCONT'));
  const debug = (port: number): string => `http://127.0.0.1:${port}/debug`;
  const base = debug(proxy.port);
  await until(async () => (await node.run('curl', ['--silent', `${base}/status`])).exitCode === 0);
  const watching = watchLosses(node, base);
  await until(async () => (await linesOf(watching)).length > 0);
  const owned = stack.move();
  return {
    cluster,
    node,
    otherNode,
    server,
    remote,
    callerPod,
    caller,
    onNode,
    outside,
    make: async (service) => {
      const made = await makeService(cluster, { node, service }, signal);
      for (const port of proxy.agentPorts) await until(() => isApplied(node, debug(port), service));
      return made;
    },
    settled: () => sleep(proxy.isSlow ? proxy.lag : 0),
    pauseProxy: () => void process.kill(running.pid, 'SIGSTOP'),
    resumeProxy: () => void process.kill(running.pid, 'SIGCONT'),
    replaceEndpoint: async (service, address) => {
      const endpoints = [{ addresses: [address], nodeName: node.nodeName, conditions: { ready: true } }];
      const place = { namespace: 'default', name: service };
      await cluster.api.patch(apiResources.endpointSlices, place, { kind: 'merge', body: { endpoints } }, signal);
      const url = `${base}/forwarding?service=default/${service}`;
      await until(async () => (await node.run('curl', ['--silent', url])).stdout.includes(`"${address}"`));
    },
    losses: async () => (await linesOf(watching)).filter((line) => 'cause' in line) as unknown as LossLine[],
    why: async (from, to, probes) => {
      const address = from.addresses[to.startsWith('[') ? 'IPv6' : 'IPv4'] ?? '';
      const query = new URLSearchParams({ from: address, to, probes: String(probes), format: 'json' });
      const { stdout } = await node.run('curl', ['--silent', '--request', 'PUT', `${base}/why?${query}`]);
      return JSON.parse(stdout) as WhyReply;
    },
    shell,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Whether both Service ports are applied with all endpoints and addresses. */
async function isApplied(node: LabNode, base: string, { name, endpoints, ingressIp }: GivenService): Promise<boolean> {
  const url = `${base}/forwarding?service=default/${name}`;
  const { stdout } = await node.run('curl', ['--silent', url]);
  const wanted = [...endpoints.map(({ address }) => address), ...(ingressIp === undefined ? [] : [ingressIp])];
  const isWhole = protocols.every((protocol) =>
    stdout.includes(`default/${name}:${protocol.toLowerCase()}/${protocol}`),
  );
  return isWhole && wanted.every((text) => stdout.includes(`"${text}"`));
}

function watchLosses(node: LabNode, base: string): LabProcess {
  const url = `${base}/losses?seconds=3600&format=json`;
  return node.spawn('curl', ['--no-buffer', '--silent', '--show-error', url], { logName: 'losses' });
}

async function linesOf(watching: LabProcess): Promise<readonly object[]> {
  const whole = (await readFile(watching.logFile, 'utf8')).split('\n').slice(0, -1);
  return whole.filter((line) => line !== '').map((line) => JSON.parse(line) as object);
}

async function shell(host: LabHost, command: string): Promise<string> {
  const { exitCode, stdout, stderr } = await host.run('sh', ['-c', command]);
  if (exitCode !== 0) throw new Error(`${command}: ${stderr.trim()}`);
  return stdout;
}

async function makeService(
  { api }: LabCluster,
  { node, service }: { readonly node: LabNode; readonly service: GivenService },
  signal: AbortSignal,
): Promise<MadeService> {
  const { name, ipFamily, endpoints, targetPort, ingressIp } = service;
  const named = { name, namespace: 'default' };
  const ports = protocols.map((protocol) => ({ name: protocol.toLowerCase(), port: 80, protocol }));
  const made = await api.create(
    apiResources.services,
    { metadata: named, spec: { ipFamilies: [ipFamily], ports, ...service.spec } },
    signal,
  );
  if (ingressIp !== undefined) {
    const body = { status: { loadBalancer: { ingress: [{ ip: ingressIp }] } } };
    await api.patch(apiResources.services, { ...named, subresource: 'status' }, { kind: 'merge', body }, signal);
  }
  const slice = {
    metadata: { ...named, labels: { 'kubernetes.io/service-name': name } },
    addressType: ipFamily,
    ports: protocols.map((protocol) => ({ name: protocol.toLowerCase(), port: targetPort, protocol })),
    endpoints: endpoints.map((one) => ({
      addresses: [one.address],
      nodeName: (one.node ?? node).nodeName,
      conditions: one.conditions ?? { ready: true },
    })),
  };
  if (endpoints.length > 0) await api.create(apiResources.endpointSlices, slice, signal);
  const nodePortOf = (protocol: ProbedProtocol): number =>
    made.spec?.ports?.find((port) => port.protocol === protocol)?.nodePort ?? 0;
  return { clusterIp: made.spec?.clusterIP ?? '', nodePorts: { TCP: nodePortOf('TCP'), UDP: nodePortOf('UDP') } };
}
