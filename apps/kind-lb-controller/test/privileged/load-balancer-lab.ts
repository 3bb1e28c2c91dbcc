import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ipFamilies, parseCidr } from '@switchyard/core';
import { apiResources, type ObjectClient, type Service } from '@switchyard/core/kubernetes';
import {
  createApiClient,
  createLab,
  type Lab,
  type LabNode,
  type LabProcess,
  listenInNamespace,
  serviceCidrs,
  startApiServer,
} from '@switchyard/lab';
import type { ServerEvent } from '../../src/haproxy/event-log.ts';

/** NodePort and healthCheckNodePort of every Service here. */
export const ports = { port: 80, nodePort: 30080, healthCheckNodePort: 32080 } as const;

/** A node that is only played: no agent, no pods. */
export interface FakeNode {
  readonly node: LabNode;
  /** From now on its health check answers this. Resolves with the wall clock of the change. */
  setHealth(status: number): Promise<number>;
}

/** A lab with a controller in the load-balancer host and two fake nodes. */
export interface LoadBalancerLab extends AsyncDisposable {
  readonly lab: Lab;
  readonly api: ObjectClient;
  readonly nodes: readonly FakeNode[];
  readonly kubeconfig: string;
  startController(flags: readonly string[]): LabProcess;
  /** All events so far. */
  events(): readonly ServerEvent[];
  /** The controller's log so far, parsed. */
  logLines(controller: LabProcess): readonly { readonly msg: string; readonly [field: string]: unknown }[];
}

const launcher = fileURLToPath(new URL('../../bin/switchyard-lb', import.meta.url));

/** Builds it. `name` as for `createLab`. */
export async function createLoadBalancerLab(name: string, signal: AbortSignal): Promise<LoadBalancerLab> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await createLab({ name, nodes: 2, ipFamilies }, signal));
  const server = stack.use(
    await startApiServer({ serviceCidrs: ipFamilies.map((family) => parseCidr(serviceCidrs[family])) }),
  );
  const inside = await listenInNamespace(
    { namespace: lab.apiServer.namespace, host: '172.18.0.10', port: 6443 },
    signal,
  );
  await server.listen(inside);
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  const api = stack.use(createApiClient({ url }));
  const kubeconfig = `${lab.folder}/kubeconfig`;
  writeFileSync(kubeconfig, server.kubeconfig('http://172.18.0.10:6443'));
  const nodes = await Promise.all(lab.nodes.map(startFakeNode));
  for (const node of lab.nodes) await api.create(apiResources.nodes, nodeObject(node), signal);
  const eventLog = `${lab.folder}/events.jsonl`;
  const owned = stack.move();
  return {
    lab,
    api,
    nodes,
    kubeconfig,
    startController: (flags) =>
      lab.loadBalancer.spawn(
        launcher,
        [
          `--kubeconfig=${kubeconfig}`,
          `--event-log=${eventLog}`,
          `--run-directory=${lab.folder}/lb`,
          '--runtime=process',
          '--interface=eth0',
          ...flags,
        ],
        { logName: 'switchyard-lb' },
      ),
    events: () => (existsSync(eventLog) ? jsonLines<ServerEvent>(eventLog) : []),
    logLines: (controller) => jsonLines(controller.logFile),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** An `externalTrafficPolicy: Local` Service of type LoadBalancer with the ports above. */
export function localService(name: string, changes: Partial<Service['spec']> = {}): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: ports.healthCheckNodePort,
      ipFamilyPolicy: 'SingleStack',
      selector: { app: name },
      ports: [{ name: 'http', port: ports.port, targetPort: 8080, nodePort: ports.nodePort }],
      ...changes,
    },
  } as Service;
}

async function startFakeNode(node: LabNode): Promise<FakeNode> {
  const program = fileURLToPath(new URL('fake-node.ts', import.meta.url));
  const { nodePort, healthCheckNodePort } = ports;
  const { child } = node.spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', program, node.name, `${nodePort}`, `${healthCheckNodePort}`],
    { ipc: true },
  );
  await once(child, 'message');
  return {
    node,
    async setHealth(status) {
      child.send({ health: status });
      const [answer] = (await once(child, 'message')) as [{ readonly at: number }];
      return answer.at;
    },
  };
}

function nodeObject(node: LabNode): object & { metadata: { name: string } } {
  const addresses = Object.values(node.addresses).map((address) => ({ type: 'InternalIP', address }));
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: node.nodeName }, status: { addresses } } as never;
}

function jsonLines<T>(file: string): readonly T[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as T);
}
