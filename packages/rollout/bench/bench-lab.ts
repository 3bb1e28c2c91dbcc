import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { apiResources, type ObjectClient } from '@switchyard/core/kubernetes';
import {
  createApiClient,
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabProcess,
  type Prober,
  serviceCidrs,
  startAgent,
  startEchoServer,
} from '@switchyard/lab';
import type { ApiServerReady } from './api-server.ts';
import type { Mode } from './modes.ts';

/** A node, two pods that say who they are, a prober in a third pod, and an API server in a process of its own. */
export interface BenchLab extends AsyncDisposable {
  readonly lab: Lab;
  readonly node: LabNode;
  readonly api: ObjectClient;
  readonly apiServerPid: number;
  readonly prober: Prober;
  /** Addresses of the pods `a` and `b`, both answering on `podPort`. */
  readonly addresses: { readonly a: string; readonly b: string };
  startAgent(mode: Pick<Mode, 'start' | 'proxyMode' | 'args' | 'program'>): LabProcess;
}

/** Where the pods' echo servers listen. */
export const podPort = 8080;

/** Builds the lab. The cluster only has its Node yet. Labs side by side need names of their own. */
export async function createBenchLab(signal: AbortSignal, name = 'figures'): Promise<BenchLab> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await createLab({ name, nodes: 1, ipFamilies: ['IPv4'] }, signal));
  const [node] = lab.nodes;
  if (node === undefined) throw new Error('the lab has no node');
  const kubeconfig = `${lab.folder}/kubeconfig`;
  const { child, url } = await startApiServer(lab, kubeconfig);
  stack.defer(() => void child.kill('SIGKILL'));
  const api = stack.use(createApiClient({ url, name: 'bench' }));
  const metadata = { name: node.nodeName };
  await api.create(apiResources.nodes, { metadata }, signal);
  const status = { addresses: [{ type: 'InternalIP' as const, address: node.addresses.IPv4 ?? '' }] };
  await api.updateStatus(apiResources.nodes, { metadata, status }, signal);
  const [a, b, client] = await Promise.all(['a', 'b', 'prober'].map((name) => lab.addPod(node, name)));
  if (a === undefined || b === undefined || client === undefined) throw new Error('a pod is missing');
  for (const pod of [a, b]) startEchoServer(pod, { pod: pod.name, tcp: [podPort] });
  const prober = stack.use(await createProber(client, signal));
  const addresses = { a: a.addresses.IPv4 ?? '', b: b.addresses.IPv4 ?? '' };
  for (const by of ['a', 'b'] as const) {
    const request = { protocol: 'tcp', address: addresses[by], port: podPort } as const;
    await prober.awaitAnswer(request, { by, interval: 50, timeout: 5000 });
  }
  const owned = stack.move();
  return {
    lab,
    node,
    api,
    apiServerPid: child.pid ?? 0,
    prober,
    addresses,
    startAgent: (mode) => mode.start?.(node, { kubeconfig, folder: lab.folder }) ?? startAgent(node, kubeconfig, mode),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Starts the lab's API server in a process of its own and writes the kubeconfig for the lab's nodes. */
export async function startApiServer(
  lab: Lab,
  kubeconfig: string,
): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const program = fileURLToPath(new URL('./api-server.ts', import.meta.url));
  const { namespace, addresses } = lab.apiServer;
  const args = [namespace, serviceCidrs.IPv4, kubeconfig, addresses.IPv4 ?? ''];
  const child = fork(program, args, { execArgv: ['--conditions=@switchyard/source', '--max-semi-space-size=16'] });
  const [ready] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('the API server has ended'))),
  ])) as [ApiServerReady];
  return { child, url: ready.url };
}
