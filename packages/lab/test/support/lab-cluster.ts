import { type IpFamily, type Logger, parseCidr } from '@switchyard/core';
import { apiResources, type ObjectClient, type Pod } from '@switchyard/core/kubernetes';
import {
  type ApiServer,
  createApiClient,
  createLab,
  type Lab,
  serviceCidrs,
  startApiServer,
  startWorkloads,
  type WorkloadEvent,
  type Workloads,
} from '../../src/index.ts';

/** A lab with an API server and workloads. */
export interface LabCluster extends AsyncDisposable {
  readonly lab: Lab;
  readonly server: ApiServer;
  readonly api: ObjectClient;
  /** On the machine's loopback. */
  readonly url: string;
  readonly workloads: Workloads;
  /** All events so far. */
  readonly events: readonly WorkloadEvent[];
  /** Warnings and errors of the controllers. */
  readonly complaints: readonly unknown[];
  /** Another instance on the same lab; dispose the first one before. */
  startWorkloads(): Promise<Workloads>;
  pods(): Promise<readonly Pod[]>;
}

/** Options of the cluster. */
export interface LabClusterOptions {
  readonly name: string;
  readonly nodes: number;
  readonly timeScale: number;
  readonly ipFamilies?: readonly IpFamily[];
  readonly hasDaemonSets?: boolean;
}

/** Builds it; dispose removes everything. */
export async function startLabCluster(options: LabClusterOptions, signal: AbortSignal): Promise<LabCluster> {
  const { name, nodes, timeScale, ipFamilies = ['IPv4', 'IPv6'], hasDaemonSets = false } = options;
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await createLab({ name, nodes, ipFamilies }, signal));
  const cidrs = ipFamilies.map((family) => parseCidr(serviceCidrs[family]));
  const server = stack.use(await startApiServer({ serviceCidrs: cidrs, hasDaemonSets }));
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  const api = stack.use(createApiClient({ url, name: 'workloads-test' }));
  const events: WorkloadEvent[] = [];
  const complaints: unknown[] = [];
  const complain = (message: string, fields: unknown): void => void complaints.push([message, fields]);
  const quiet = (): void => undefined;
  const log: Logger = { error: complain, warn: complain, info: quiet, debug: quiet, trace: quiet };
  const onEvent = (event: WorkloadEvent): void => void events.push(event);
  const start = (): Promise<Workloads> => startWorkloads({ lab, api, timeScale, onEvent, log, hasDaemonSets }, signal);
  const workloads = stack.use(await start());
  const owned = stack.move();
  return {
    lab,
    server,
    api,
    url,
    workloads,
    events,
    complaints,
    startWorkloads: async () => owned.use(await start()),
    pods: async () => (await api.list(apiResources.pods, {}, signal)).items,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
