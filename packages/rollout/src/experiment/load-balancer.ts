import { type IpFamily, millis, systemClock, HostError } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type LabProcess, dockerPackages, joinDockerNetwork, startDockerEngine } from '@switchyard/lab';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { awaitCondition, type Experiment, programPath } from './experiment.ts';
import { healthCheckFlags } from '../profiles.ts';
import { readLoadBalancer, readLogFile } from '../rollout/read-logs.ts';
import type { LoadBalancerMoment, RunSettings } from '../run-record.ts';

/** Namespace and name of a Service. */
export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

/** One of a Service's frontends. */
export interface Frontend extends ServiceName {
  /** Port of the Service. */
  readonly port: number;
  readonly ipFamily: IpFamily;
}

/** The load-balancer controller with its HAProxy. Disposing stops it. */
export interface LoadBalancer extends AsyncDisposable {
  /** Empty: another part supervises it. */
  readonly programs: readonly LabProcess[];
  /** HAProxy's states of a frontend's nodes, in order of time; every node is UP when it starts. */
  momentsOf(frontend: Frontend): readonly LoadBalancerMoment[];
  /** HAProxy's current state of a frontend's nodes, true for UP; nodes without a check result are left out. */
  healthOf(frontend: Frontend): ReadonlyMap<string, boolean>;
  /** Waits for the address of this family in the Service's status. */
  addressOf(frontend: Pick<Frontend, 'namespace' | 'name' | 'ipFamily'>, signal: AbortSignal): Promise<string>;
}

/** Settings of a load balancer. */
export type LoadBalancerSettings = Pick<RunSettings, 'healthCheck' | 'fastDrain'>;

const statusTimeout = millis(60_000);

/** The flags that every runtime has for what a run chooses. */
export function settingArgs({ healthCheck, fastDrain }: LoadBalancerSettings): readonly string[] {
  return [...healthCheckFlags(healthCheck), ...(fastDrain ? ['--fast-drain'] : [])];
}

/** Starts the controller with these flags, and follows its event log. */
export function runLoadBalancer(
  experiment: Experiment,
  options: { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> },
): LoadBalancer {
  const { lab, api, cluster } = experiment;
  const startedAt = systemClock.now();
  const eventLog = join(lab.folder, `load-balancer-${Math.round(startedAt)}.jsonl`);
  writeFileSync(eventLog, '');
  const args = [`--kubeconfig=${cluster.insideKubeconfig}`, `--event-log=${eventLog}`, ...options.args];
  const program = lab.loadBalancer.spawn(programPath('switchyard-lb'), args, {
    logName: 'load-balancer',
    env: options.env,
  });
  const momentsSince = (
    { namespace, name, port, ipFamily }: Frontend,
    nodes: readonly string[],
  ): readonly LoadBalancerMoment[] => {
    const frontend = { service: `${namespace}/${name}`, port, ipFamily };
    return readLoadBalancer(readLogFile(eventLog), frontend, { at: startedAt, nodes });
  };
  return {
    programs: [program],
    momentsOf: (frontend) =>
      momentsSince(
        frontend,
        lab.nodes.map((node) => node.name),
      ),
    healthOf: (frontend) => new Map(momentsSince(frontend, []).map((moment) => [moment.node, moment.isUp])),
    addressOf: ({ namespace, name, ipFamily }, signal) =>
      awaitCondition(
        `an ${ipFamily} address in the status of Service ${namespace}/${name}`,
        async () => {
          const { status } = await api.get(apiResources.services, { namespace, name }, signal);
          const all = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
          return all.find((ip) => ip.includes(':') === (ipFamily === 'IPv6'));
        },
        { timeout: statusTimeout, programs: [program], signal },
      ),
    [Symbol.asyncDispose]: () => program.stop(),
  };
}

/** The lab's load-balancer host, ready to run load balancers one after the other. Disposing it comes after theirs. */
export interface LoadBalancerHost extends AsyncDisposable {
  start(settings: LoadBalancerSettings): LoadBalancer;
}

/** Prepares the host for a runtime. `docker` starts a Docker Engine there, builds the image and reports progress to `report`; rejects with what is missing. */
export async function prepareLoadBalancerHost(
  experiment: Experiment,
  options: { readonly runtime: RunSettings['runtime']; readonly report: (text: string) => void },
  signal: AbortSignal,
): Promise<LoadBalancerHost> {
  if (options.runtime === 'docker') return startDockerHost(experiment, options.report, signal);
  return {
    start: (settings) => {
      const { lab } = experiment;
      // A folder of its own: with an earlier one it would continue with the stored node states, and log no event.
      const place = lab.ipFamilies.map((family) => `--address=${lab.loadBalancer.addresses[family]}`);
      place.push(`--run-directory=${lab.folder}/lb${Math.round(systemClock.now())}`);
      return runLoadBalancer(experiment, { args: ['--runtime=process', ...place, ...settingArgs(settings)], env: {} });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Name of the cluster for the controller. */
const cluster = 'lab';

/**
 * Starts a real Docker Engine in the lab's load-balancer host, from Debian's docker.io as `tools/debian` unpacks it, joins its network
 * `kind` to the lab, and builds the load balancer's image there from local layers. Needs no engine on this machine, and does not use one.
 */
export async function startDockerHost(
  experiment: Experiment,
  report: (text: string) => void,
  signal: AbortSignal,
): Promise<LoadBalancerHost> {
  const { lab } = experiment;
  const { packages, exclude } = dockerPackages;
  const excluded = exclude.map((name) => `--exclude=${name}`);
  const programs = await runTool({ tool: 'debian/fetch.ts', args: [...excluded, ...packages] }, signal);
  await using stack = new AsyncDisposableStack();
  const engine = stack.use(await startDockerEngine({ lab, host: lab.loadBalancer, programs }, signal));
  report(`Docker Engine ${engine.version} runs in the load-balancer host`);
  stack.use(await joinDockerNetwork({ lab, host: lab.loadBalancer, engine, isAutomatic: true }, signal));
  const { file } = engine.command;
  const env = { ...engine.command.env, PATH: `${dirname(file)}:${process.env['PATH'] ?? ''}` };
  report('building the image switchyard/load-balancer from local layers');
  await runTool({ tool: 'images/image.ts', args: ['load-balancer', '--local-base'], env }, signal);
  const owned = stack.move();
  const runtime = ['--runtime=docker', `--cluster=${cluster}`];
  return {
    start: (settings) => runLoadBalancer(experiment, { args: [...runtime, ...settingArgs(settings)], env }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A tool of this checkout to run, as a developer would. */
export interface ToolRun {
  /** Below `tools`, for example `debian/fetch.ts`. */
  readonly tool: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a tool and returns its standard output; its stderr goes to this process's stderr. Rejects when it fails. */
export async function runTool({ tool, args, env = {} }: ToolRun, signal: AbortSignal): Promise<string> {
  const path = fileURLToPath(new URL(`../../../../tools/${tool}`, import.meta.url));
  const child = spawn(process.execPath, ['--conditions=@switchyard/source', path, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const abort = (): void => void child.kill('SIGTERM');
  signal.addEventListener('abort', abort, { once: true });
  try {
    const [printed, [code, killedBy]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    signal.throwIfAborted();
    if (code === 0) return printed.trim();
    throw new HostError('rollout.tool', `tools/${tool} ended with ${code ?? killedBy}; what it said is above`);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
