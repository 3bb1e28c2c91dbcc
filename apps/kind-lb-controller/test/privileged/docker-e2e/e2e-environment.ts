import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ipFamilies } from '@switchyard/core';
import { apiResources, type ObjectClient } from '@switchyard/core/kubernetes';
import {
  createLab,
  createProber,
  type DockerEngine,
  dockerPackages,
  joinDockerNetwork,
  type Lab,
  type LabNode,
  type LabProcess,
  type Prober,
  startDockerEngine,
  startEchoServer,
  startKindCluster,
  startLabApiServer,
} from '@switchyard/lab';
import { debianRoot, machineArchitecture } from '../../../../../tools/debian/debian-root.ts';
import { buildImage, buildLocalBase, defaultTag } from '../../../../../tools/images/build-image.ts';

/** Ports at which every node answers, for Services that choose them: for traffic, and for health checks. */
export const nodePorts = { http: 30080, moreHttp: 30081, udp: 30053, health: 32080, proxyHealth: 10256 } as const;

/** A cluster with Nodes and an API server, and a container that looks like kind's control plane. */
export interface E2eCluster {
  readonly name: string;
  readonly api: ObjectClient;
}

/** One Docker Engine in a lab with two clusters and the load balancer's image: everything but the controller. */
export interface E2eEnvironment extends AsyncDisposable {
  readonly lab: Lab;
  readonly engine: DockerEngine;
  readonly clusters: readonly [E2eCluster, E2eCluster];
  /** In the lab's client: outside of the cluster and of the engine's host. */
  readonly client: Prober;
  /** The whole program, as a process on the engine's host, with leases of short duration; the flags come last and win. */
  startController(flags?: readonly string[]): LabProcess;
  /** Names of the load balancers' containers that run. */
  running(): Promise<readonly string[]>;
  /** Of all containers of load balancers in any state. */
  all(): Promise<readonly string[]>;
  docker(...args: readonly string[]): Promise<string>;
}

const launcher = fileURLToPath(new URL('../../../bin/switchyard-lb', import.meta.url));
const leases = [
  '--leader-elect-lease-duration=3s',
  '--leader-elect-renew-deadline=2s',
  '--leader-elect-retry-period=300ms',
];

/** Builds it all; half a minute once Debian's packages are unpacked. */
export async function createE2eEnvironment(name: string, signal: AbortSignal): Promise<E2eEnvironment> {
  const programs = await debianRoot({ ...dockerPackages, signal });
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await createLab({ name, nodes: 2, ipFamilies }, signal));
  for (const node of lab.nodes) playNode(node);
  const engine = stack.use(await startDockerEngine({ lab, host: lab.loadBalancer, programs }, signal));
  stack.use(await joinDockerNetwork({ lab, host: lab.loadBalancer, engine }, signal));
  await buildLoadBalancerImage(engine, signal);
  const addCluster = async (cluster: string, port: number): Promise<E2eCluster> => {
    const { api } = stack.use(await startLabApiServer({ lab, port }, signal));
    for (const node of lab.nodes) await registerNode(api, node, signal);
    stack.use(await startKindCluster({ lab, engine, network: 'kind', name: cluster, port }, signal));
    return { name: cluster, api };
  };
  const clusters = [await addCluster('kind', 6443), await addCluster('second', 6444)] as const;
  const client = stack.use(await createProber(lab.client, signal));
  const docker = async (...args: readonly string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await engine.cli(args);
    if (exitCode !== 0) throw new Error(`docker ${args.join(' ')} ended with ${exitCode}: ${stderr.trim()}`);
    return stdout.trim();
  };
  const named = async (...filters: readonly string[]): Promise<readonly string[]> => {
    const list = await docker(
      'ps',
      ...filters,
      '--filter',
      'label=dev.switchyard.lb.cluster',
      '--format',
      '{{.Names}}',
    );
    return list.split('\n').filter(Boolean).sort();
  };
  const { file, env } = engine.command;
  const environment = { ...env, PATH: `${dirname(file)}:${process.env['PATH'] ?? ''}` };
  const owned = stack.move();
  return {
    lab,
    engine,
    clusters,
    client,
    docker,
    startController: (flags = []) =>
      lab.loadBalancer.spawn(launcher, [...leases, ...flags], { logName: 'switchyard-lb', env: environment }),
    running: () => named(),
    all: () => named('--all'),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function buildLoadBalancerImage({ command: docker }: DockerEngine, signal: AbortSignal): Promise<void> {
  const architecture = machineArchitecture();
  const base = 'switchyard/local-base:e2e';
  await buildLocalBase({ architecture, tag: base, docker, signal });
  const image = 'load-balancer' as const;
  await buildImage({ image, architecture, tag: defaultTag(image), base, docker, signal });
}

/** A node that is only played: every port answers with its name, health checks with 200. */
function playNode(node: LabNode): void {
  const { http, moreHttp, udp, health, proxyHealth } = nodePorts;
  startEchoServer(node, { pod: node.name, node: node.name, http: [http, moreHttp, health, proxyHealth], udp: [udp] });
}

async function registerNode(api: ObjectClient, node: LabNode, signal: AbortSignal): Promise<void> {
  const metadata = { name: node.nodeName };
  await api.create(apiResources.nodes, { metadata }, signal);
  const addresses = Object.values(node.addresses).map((address) => ({ type: 'InternalIP' as const, address }));
  await api.updateStatus(apiResources.nodes, { metadata, status: { addresses } }, signal);
}

/** The lines of a program's JSON log so far. */
export function logLines(program: LabProcess): readonly { readonly msg: string; readonly [field: string]: unknown }[] {
  if (!existsSync(program.logFile)) return [];
  return readFileSync(program.logFile, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { readonly msg: string });
}
