import { execFile } from 'node:child_process';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { apiResources, type ObjectClient } from '@switchyard/core/kubernetes';
import {
  createApiClient,
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { podPort, startApiServer } from '../bench-lab.ts';
import type { PeersOptions } from './options.ts';
import type { Peer, PeerSite } from './peer.ts';
import { type BenchApiServer, startRealApiServer } from './real-api-server.ts';

/** A node for each proxy, one with the pods of all Services, and an API server. */
export interface PeersLab extends AsyncDisposable {
  readonly api: ObjectClient;
  readonly site: PeerSite;
  readonly places: readonly PeerPlace[];
  /** Addresses of the pods: `a` and `b` say their names, `c` only takes connections. All on `podPort`. */
  readonly addresses: Readonly<Record<'a' | 'b' | 'c', string>>;
  /** The compiled `connections.c`. */
  readonly connections: string;
  /** Proxies that this machine cannot run, with the reason. */
  readonly left: readonly string[];
}

/** A proxy, its node, and a pod there that connects. */
export interface PeerPlace {
  readonly peer: Peer;
  readonly node: LabNode;
  readonly client: LabPod;
  readonly prober: Prober;
}

/** CPUs that connect and take connections, so that each run measures the same path. */
export const pinned: { readonly client: string; readonly server: string } = {
  client: '0',
  server: cpus().length > 1 ? '1' : '0',
};

/** Builds it without Services. `name` is the lab's. */
export async function createPeersLab(
  name: string,
  peers: readonly Peer[],
  options: Pick<PeersOptions, 'apiServer'>,
  signal: AbortSignal,
): Promise<PeersLab> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await createLab({ name, nodes: peers.length + 1, ipFamilies: ['IPv4'] }, signal));
  const server = stack.use(await startServer(lab, options, signal));
  const { api, kubeconfig } = server;
  for (const node of lab.nodes) await registerNode(api, node, signal);
  const [home, ...nodes] = lab.nodes;
  if (home === undefined) throw new Error('the lab has no node');
  const connections = `${lab.folder}/connections`;
  await compileConnections(connections);
  const addresses = await startPods(lab, home, connections);
  const places: PeerPlace[] = [];
  const left: string[] = [];
  for (const [index, peer] of peers.entries()) {
    const node = nodes[index];
    if (node === undefined) throw new Error('a node is missing');
    if (peer.mode === 'ebpf' && (node.cgroupPath === undefined || node.bpffsPath === undefined)) {
      left.push(`${peer.name}: ${lab.limitations.join(' ')}`);
      continue;
    }
    const client = await lab.addPod(node, `client${index}`);
    const prober = stack.use(await createProber(client, signal));
    places.push({ peer, node, client, prober });
    for (const by of ['a', 'b'] as const) {
      const request = { protocol: 'tcp', address: addresses[by], port: podPort } as const;
      await prober.awaitAnswer(request, { by, interval: 50, timeout: 5000 });
    }
  }
  const owned = stack.move();
  const site = { kubeconfig, folder: lab.folder };
  return { api, site, places, addresses, connections, left, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function startServer(
  lab: Lab,
  { apiServer }: Pick<PeersOptions, 'apiServer'>,
  signal: AbortSignal,
): Promise<BenchApiServer> {
  if (apiServer !== undefined) return startRealApiServer(lab, apiServer, signal);
  const kubeconfig = `${lab.folder}/kubeconfig`;
  const { child, url } = await startApiServer(lab, kubeconfig);
  const api = createApiClient({ url, name: 'bench' });
  return {
    api,
    kubeconfig,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]();
      child.kill('SIGKILL');
    },
  };
}

async function registerNode(api: ObjectClient, { nodeName, addresses }: LabNode, signal: AbortSignal): Promise<void> {
  const metadata = { name: nodeName };
  await api.create(apiResources.nodes, { metadata }, signal);
  const status = { addresses: [{ type: 'InternalIP' as const, address: addresses.IPv4 ?? '' }] };
  await api.updateStatus(apiResources.nodes, { metadata, status }, signal);
}

async function startPods(lab: Lab, node: LabNode, connections: string): Promise<PeersLab['addresses']> {
  const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => lab.addPod(node, name)));
  if (a === undefined || b === undefined || c === undefined) throw new Error('a pod is missing');
  for (const pod of [a, b]) startEchoServer(pod, { pod: pod.name, tcp: [podPort] });
  c.spawn('taskset', ['-c', pinned.server, connections, 'serve', String(podPort)]);
  const addressOf = ({ addresses }: LabPod): string => addresses.IPv4 ?? '';
  return { a: addressOf(a), b: addressOf(b), c: addressOf(c) };
}

async function compileConnections(target: string): Promise<void> {
  const source = fileURLToPath(new URL('../../../backend-ebpf/bench/connections.c', import.meta.url));
  await promisify(execFile)('cc', ['-O2', '-Wall', '-Wextra', '-Werror', source, '-o', target]);
}
