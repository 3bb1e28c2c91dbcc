import { fileURLToPath } from 'node:url';
import { apiResources, type Deployment } from '@switchyard/core/kubernetes';
import { conditionType } from '@switchyard/drain-gate';
import {
  type AgentMode,
  createProber,
  type LabCluster,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  startCluster,
  waitForAgents,
  zeroapp,
} from '@switchyard/lab';
import { readLog, until } from '../../privileged/agent-log.ts';

const program = fileURLToPath(new URL('../../../bin/switchyard-agent', import.meta.url));
/** The preStop hook. */
export const hook: string = fileURLToPath(
  new URL('../../../../../packages/native/build/switchyard-drain-hook', import.meta.url),
);

/** Which cluster and application. */
export interface DrainSiteOptions {
  readonly proxyMode: AgentMode;
  readonly policy: 'Cluster' | 'Local';
  readonly replicas: number;
  /** Whether each pod needs a node of its own. */
  readonly isAlone: boolean;
  /** Whether observers beside the agents answer the gate. */
  readonly isObserved?: boolean;
  /** More arguments of the gate. */
  readonly gateArgs?: readonly string[];
  /** Whether pods have the readiness gate. Default: no. */
  readonly isGated?: boolean;
}

/** Three nodes with agents and a drain gate, and an application that stops at once after SIGTERM and asks the gate before. */
export interface DrainSite extends AsyncDisposable {
  readonly cluster: LabCluster;
  readonly nodes: readonly [LabNode, LabNode, LabNode];
  /** In the order of the nodes. */
  readonly agents: readonly LabProcess[];
  /** `HOST:PORT` of the gate. */
  readonly gate: string;
  /** Outside of the cluster. */
  readonly outside: Prober;
  readonly caller: LabPod;
  /** Sends from `caller`. */
  readonly inside: Prober;
  readonly clusterIp: string;
  readonly nodePort: number;
  readonly healthCheckNodePort: number;
  /** Rolls the application out again; resolves when only new pods are left, and all are ready. */
  restart(): Promise<void>;
  /** Answers of the gate so far, as its log has them. */
  gateLog(): Promise<readonly string[]>;
}

export async function openDrainSite(options: DrainSiteOptions, signal: AbortSignal): Promise<DrainSite> {
  const { proxyMode, policy, replicas, isObserved = false, isGated = false, gateArgs = [] } = options;
  await using stack = new AsyncDisposableStack();
  // Files run at the same time: each combination needs a lab of its own.
  const marks = [
    policy === 'Local' ? 'l' : '',
    isObserved ? 'o' : '',
    isGated ? 'g' : '',
    gateArgs.length > 0 ? 'a' : '',
  ];
  const name = `gt${proxyMode.slice(0, 3)}${marks.join('')}`;
  const cluster = stack.use(await startCluster({ name, nodes: 3, ipFamilies: ['IPv4'] }, signal));
  const { lab, api } = cluster;
  const nodes = lab.nodes as unknown as DrainSite['nodes'];
  const answers = '--switchyard-drain-gate';
  const agents = await cluster.startAgents({ proxyMode, args: isObserved ? [] : [answers] }, signal);
  await waitForAgents(lab, agents, signal);
  if (isObserved)
    for (const node of nodes)
      cluster.startAgent(node, { args: ['--switchyard-observe', answers, '--healthz-bind-address=0.0.0.0:10238'] });
  const [first] = nodes;
  const more = [...(isObserved ? ['--node-port=10238'] : []), ...(isGated ? ['--readiness-gate'] : []), ...gateArgs];
  const args = ['drain-gate', `--kubeconfig=${cluster.insideKubeconfig}`, ...more];
  const running = first.spawn(program, args, { logName: 'gate' });
  const gate = `${first.addresses.IPv4}:10247`;
  await until(async () => (await first.run('curl', ['-sf', `http://${gate}/healthz`])).exitCode === 0);
  const outside = stack.use(await createProber(lab.client, signal));
  const caller = await lab.addPod(first, 'caller');
  const inside = stack.use(await createProber(caller, signal));
  const app = { replicas, delayShutdown: 0, externalTrafficPolicy: policy, maxSurge: 1, maxUnavailable: 0 };
  const { deployment, service } = zeroapp(app);
  const { spec = {} } = await api.create(apiResources.services, service, signal);
  await api.create(apiResources.deployments, withHook(deployment, gate, options), signal);
  const pods = async () => (await api.list(apiResources.pods, {}, signal)).items;
  const areReady = async (): Promise<boolean> => {
    const conditions = (await pods()).map(({ status }) => status?.conditions?.find(({ type }) => type === 'Ready'));
    return conditions.length === replicas && conditions.every((one) => one?.status === 'True');
  };
  await until(areReady);
  const owned = stack.move();
  return {
    cluster,
    nodes,
    agents,
    gate,
    outside,
    caller,
    inside,
    clusterIp: spec.clusterIP ?? '',
    nodePort: spec.ports?.[0]?.nodePort ?? 0,
    healthCheckNodePort: spec.healthCheckNodePort ?? 0,
    restart: async () => {
      const before = new Set((await pods()).map(({ metadata }) => metadata.uid));
      const annotations = { 'kubectl.kubernetes.io/restartedAt': new Date().toISOString() };
      const body = { spec: { template: { metadata: { annotations } } } };
      await api.patch(apiResources.deployments, { name: 'zeroapp' }, { kind: 'merge', body }, signal);
      await until(async () => (await areReady()) && (await pods()).every(({ metadata }) => !before.has(metadata.uid)));
    },
    gateLog: async () => (await readLog(running)).map(({ msg }) => msg).filter((msg) => msg.includes('to stop')),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** With a hook instead of a sleep, and the readiness gate. */
function withHook({ metadata, spec }: Deployment, gate: string, { isAlone, isGated }: DrainSiteOptions): Deployment {
  const template = spec?.template;
  const [container] = template?.spec?.containers ?? [];
  const { affinity, ...rest } = template?.spec ?? {};
  const containers = [{ ...container, lifecycle: { preStop: { exec: { command: [hook, '--gate', gate] } } } }];
  const gates = isGated === true ? { readinessGates: [{ conditionType }] } : {};
  const pod = { ...rest, ...(isAlone ? { affinity } : {}), ...gates, containers };
  return { metadata, spec: { ...spec, template: { ...template, spec: pod } } } as Deployment;
}
