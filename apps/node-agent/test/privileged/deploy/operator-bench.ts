import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type ProbeResult,
  startCluster,
  zeroapp,
} from '@switchyard/lab';
import { until } from '../agent-log.ts';
import type { PodFiles } from './container.ts';
import { checkout, shell } from './kubectl.ts';
import type { OldService } from './old-kube-proxy.ts';
import type { Rendered } from './rendered.ts';

const kubeadm = fileURLToPath(new URL('kubeadm.yaml', import.meta.url));

/** Result of a load of calls. */
export interface Calls {
  readonly count: number;
  readonly failures: readonly FailedCall[];
}

/** A failed call and the time of its end, in the format of the logs. */
export type FailedCall = ProbeResult & { readonly at: string };

/** A cluster of one node with a Service of one pod, a pod that calls it, and an operator with kubectl. */
export interface OperatorBench extends AsyncDisposable {
  readonly cluster: LabCluster;
  readonly node: LabNode;
  readonly service: OldService;
  /** kubeadm's manifest of kube-proxy, with this cluster's API server. */
  readonly kubeadmFile: string;
  /** Output of the command lines, typed with the checkout's `deploy` at hand; a failing one throws with it. */
  operator(commands: string, editor?: string): Promise<string>;
  /** Contents of the volumes of a pod on the node: the ConfigMap kube-proxy. */
  podFiles(): Promise<PodFiles>;
  /** Status of the node's /healthz; undefined without an answer. */
  health(): Promise<number | undefined>;
  call(): Promise<ProbeResult>;
  /** Calls the Service every 20 ms while `work` runs. */
  callsDuring(work: () => Promise<void>): Promise<Calls>;
  /** The node's nft tables. */
  tables(): Promise<string>;
}

/** Builds it, with the kinds that manifests consist of. */
export async function startOperatorBench(name: string, signal: AbortSignal): Promise<OperatorBench> {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(
    await startCluster({ name, nodes: 1, ipFamilies: ['IPv4', 'IPv6'], hasAddOnKinds: true }, signal),
  );
  const [node] = cluster.lab.nodes as [LabNode];
  const desk = join(cluster.lab.folder, 'desk');
  await mkdir(desk);
  await symlink(join(checkout, 'deploy'), join(desk, 'deploy'));
  const kubeadmFile = join(cluster.lab.folder, 'kubeadm.yaml');
  const manifest = (await readFile(kubeadm, 'utf8')).replace(/server: \S+/, `server: ${cluster.insideUrl}`);
  await writeFile(kubeadmFile, manifest);
  const service = await startService(cluster, signal);
  const caller = stack.use(await createProber(await cluster.lab.addPod(node, 'caller'), signal));
  const client = stack.use(await createProber(cluster.lab.client, signal));

  const operator: OperatorBench['operator'] = async (commands, editor = 'false') => {
    const env = { KUBECONFIG: cluster.kubeconfig, HOME: desk, KUBE_EDITOR: editor };
    const { exitCode, output } = await shell(commands, env, desk);
    if (exitCode !== 0) throw new Error(`${commands} ended with ${exitCode}: ${output}`);
    return output;
  };
  const call = (): Promise<ProbeResult> =>
    caller.probe({ protocol: 'http', address: service.clusterIp, port: service.port, path: '/' });
  const owned = stack.move();
  return {
    cluster,
    node,
    service,
    kubeadmFile,
    operator,
    call,
    callsDuring: (work) => callsDuring(call, work),
    podFiles: async () => {
      const configMap: Rendered = JSON.parse(await operator('kubectl -n kube-system get configmap kube-proxy -o json'));
      return { folder: join(cluster.lab.folder, 'pod'), configMaps: { 'kube-proxy': configMap.data } };
    },
    health: async () => {
      const target = { protocol: 'http', address: node.addresses.IPv4 ?? '', port: 10_256, path: '/healthz' } as const;
      const answer = await client.probe(target);
      return answer.status === 'answered' ? answer.httpStatus : undefined;
    },
    tables: async () => (await node.run('nft', ['list', 'tables'])).stdout,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * Waits for a ready endpoint, as kube-proxy's rules require: until then the agent rejects packets to the Service. The app
 * becomes ready late, so that a test that does not wait fails each time.
 */
async function startService({ api }: LabCluster, signal: AbortSignal): Promise<OldService> {
  const { deployment, service } = zeroapp({ port: 8080, delayShutdown: 0, terminationGracePeriod: 1, readyAfter: 2 });
  const created = await api.create(apiResources.services, service, signal);
  await api.create(apiResources.deployments, deployment, signal);
  const ofService = { labelSelector: `kubernetes.io/service-name=${created.metadata.name}` };
  let address: string | undefined;
  await until(async () => {
    const { items } = await api.list(apiResources.endpointSlices, ofService, signal);
    const endpoints = items.flatMap((slice) => slice.endpoints ?? []);
    [address] = endpoints.find(({ conditions }) => conditions?.ready === true)?.addresses ?? [];
    return address !== undefined;
  });
  return { clusterIp: created.spec?.clusterIP ?? '', port: 80, endpoint: `${address}:8080` };
}

async function callsDuring(call: () => Promise<ProbeResult>, work: () => Promise<void>): Promise<Calls> {
  const failures: FailedCall[] = [];
  const done = new AbortController();
  let count = 0;
  const calling = (async () => {
    while (!done.signal.aborted) {
      const result = await call();
      count += 1;
      if (result.status !== 'answered') failures.push({ ...result, at: new Date().toISOString() });
      await sleep(20);
    }
  })();
  try {
    await work();
  } finally {
    done.abort();
    await calling;
  }
  return { count, failures };
}

/** Output of a process of a container. With --config it is kube-proxy's format: text. */
export function logOf(process: LabProcess): Promise<string> {
  return readFile(process.logFile, 'utf8');
}
