import { writeFile } from 'node:fs/promises';
import { appendFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { type LogFields, type Logger, parseCidr, systemClock } from '@switchyard/core';
import { anonymousConnection, newObjectClient, type ObjectClient } from '@switchyard/core/kubernetes';
import { serviceCidrs } from './network-plan.ts';
import { type AgentOptions, checkAgent, startAgent, waitForAgents } from './agent-program.ts';
import { connectorIn, listenInNamespace } from './apiserver/namespace-sockets.ts';
import { type ApiServer, startApiServer } from './apiserver/server.ts';
import { type ClusterRecord, writeClusterRecord } from './lab-record.ts';
import { createLab } from './namespace-lab.ts';
import type { Lab, LabNode, LabOptions, LabProcess } from './lab.ts';
import { startWorkloads, type Workloads } from './workloads/start-workloads.ts';
import type { WorkloadEvent } from './workloads/workload-event.ts';

/** Options of a cluster. */
export interface ClusterOptions extends LabOptions {
  /** 1 (default) is real time; 0.1 makes every duration of the pods' manifests a tenth. */
  readonly timeScale?: number;
  /** Called at once with every event of a pod's life cycle. */
  readonly onWorkloadEvent?: (event: WorkloadEvent) => void;
  /** Called with one line at each step of the start. */
  readonly onProgress?: (text: string) => void;
  /** Also serves the kinds of an add-on's manifests, as `ApiServerOptions.hasAddOnKinds`. Default false. */
  readonly hasAddOnKinds?: boolean;
  /** Also serves DaemonSets and runs their controller. Default false. */
  readonly hasDaemonSets?: boolean;
}

/** A lab with an API server, its Node objects and the controllers of a small cluster, all owned by this process. */
export interface LabCluster extends ClusterRecord, AsyncDisposable {
  readonly lab: Lab;
  /** Factor of all durations of the pods' manifests. */
  readonly timeScale: number;
  /** For state, history and faults. */
  readonly server: ApiServer;
  /** A client of the server, over loopback. */
  readonly api: ObjectClient;
  readonly workloads: Workloads;
  /** Starts the node agent in `node` with the flags a DaemonSet would give it. */
  startAgent(node: LabNode, options?: AgentOptions): LabProcess;
  /** Starts the node agent on all nodes and waits until each `/healthz` answers 200. */
  startAgents(options: AgentOptions, signal: AbortSignal): Promise<readonly LabProcess[]>;
}

/** Port of the API server at the API host's address. */
const insidePort = 6443;

/**
 * Builds the lab, starts the API server on the machine's loopback (any port) and at the API host's address, registers
 * the nodes and starts the controllers. Resolves when all controllers have listed the cluster. If a step fails or `signal`
 * aborts, the unfinished cluster is removed. `signal` has no effect after that.
 */
export async function startCluster(options: ClusterOptions, signal: AbortSignal): Promise<LabCluster> {
  const report = options.onProgress ?? ((): void => undefined);
  await using stack = new AsyncDisposableStack();
  const hasDaemonSets = options.hasDaemonSets === true;
  const lab = stack.use(await createLab(options, signal));
  for (const limitation of lab.limitations) report(limitation);
  report(`network of ${lab.nodes.length} nodes is up`);
  const cidrs = lab.ipFamilies.map((family) => parseCidr(serviceCidrs[family]));
  const { connect } = stack.use(connectorIn(lab.apiServer.namespace));
  const hasAddOnKinds = options.hasAddOnKinds === true;
  const server = stack.use(await startApiServer({ serviceCidrs: cidrs, hasAddOnKinds, hasDaemonSets, connect }));
  const record = await listen(lab, server, signal);
  report(`API server listens at ${record.url}`);
  const api = stack.use(createApiClient({ url: record.url, name: 'lab' }));
  const log = createFileLogger(`${lab.folder}/logs/controllers.log`);
  const { timeScale = 1, onWorkloadEvent } = options;
  const workloads = stack.use(
    await startWorkloads({ lab, api, log, hasDaemonSets, timeScale, onEvent: onWorkloadEvent }, signal),
  );
  report('controllers are running');
  await writeClusterRecord(lab.name, record);
  const owned = stack.move();
  const start = (node: LabNode, agent?: AgentOptions): LabProcess => startAgent(node, record.insideKubeconfig, agent);
  return {
    ...record,
    lab,
    timeScale,
    server,
    api,
    workloads,
    startAgent: start,
    startAgents: async (agent, inner) => {
      if (agent.program === undefined) await checkAgent();
      const agents = lab.nodes.map((node) => start(node, agent));
      await waitForAgents(lab, agents, inner);
      return agents;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** One server, two listeners: on loopback for the machine's kubectl, and on all addresses of the API host. */
async function listen(lab: Lab, server: ApiServer, signal: AbortSignal): Promise<ClusterRecord> {
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  const [family = 'IPv4'] = lab.ipFamilies;
  const { addresses } = lab.apiServer;
  await listenInLab(lab, { server, port: insidePort }, signal);
  const host = family === 'IPv6' ? `[${addresses.IPv6}]` : addresses.IPv4;
  const insideUrl = `http://${host}:${insidePort}`;
  const kubeconfig = `${lab.folder}/kubeconfig`;
  const insideKubeconfig = `${lab.folder}/kubeconfig-inside`;
  await writeFile(kubeconfig, server.kubeconfig(url));
  await writeFile(insideKubeconfig, server.kubeconfig(insideUrl));
  return { url, kubeconfig, insideUrl, insideKubeconfig };
}

/** Lab and port of another API server. */
export interface LabApiServerOptions {
  readonly lab: Lab;
  /** Port on the lab's API host; `startCluster` uses 6443. */
  readonly port: number;
}

/** An API server without controllers and Nodes: another cluster for a program that only watches. */
export interface LabApiServer extends AsyncDisposable {
  readonly server: ApiServer;
  /** A client of the server, over loopback. */
  readonly api: ObjectClient;
  readonly port: number;
}

/** Starts an API server on the machine's loopback (any port) and the API host's addresses. */
export async function startLabApiServer(options: LabApiServerOptions, signal: AbortSignal): Promise<LabApiServer> {
  const { lab, port } = options;
  await using stack = new AsyncDisposableStack();
  const cidrs = lab.ipFamilies.map((family) => parseCidr(serviceCidrs[family]));
  const server = stack.use(await startApiServer({ serviceCidrs: cidrs }));
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  await listenInLab(lab, { server, port }, signal);
  const api = stack.use(createApiClient({ url, name: 'lab' }));
  const owned = stack.move();
  return { server, api, port, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Makes a server listen on all addresses of the lab's API host. */
async function listenInLab(
  lab: Lab,
  { server, port }: Pick<LabApiServer, 'server' | 'port'>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace } = lab.apiServer;
  const host = lab.ipFamilies.includes('IPv6') ? '::' : '0.0.0.0';
  await server.listen(await listenInNamespace({ namespace, host, port }, signal));
}

/** Makes a client of a lab's API server, for example `http://10.0.0.1:6443`; sends nothing yet. */
export function createApiClient(options: { readonly url: string; readonly name?: string }): ObjectClient {
  const { url, name: userAgent = 'switchyard-lab' } = options;
  return newObjectClient(anonymousConnection(new URL(url)), { clock: systemClock, userAgent });
}

/** Creates a logger that appends lines of time, level, message and fields to `file`, without debug and trace. */
function createFileLogger(file: string): Logger {
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      const rest = Object.entries(fields).map(
        ([name, value]) => ` ${name}=${inspect(value, { breakLength: Infinity })}`,
      );
      appendFileSync(file, `${new Date().toISOString()} ${level} ${message}${rest.join('')}\n`);
    };
  const ignore = (): void => undefined;
  return { error: write('error'), warn: write('warn'), info: write('info'), debug: ignore, trace: ignore };
}
