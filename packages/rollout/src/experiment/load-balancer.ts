import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type IpFamily, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type LabProcess } from '@switchyard/lab';
import { healthCheckFlags } from '../profiles.ts';
import { readLoadBalancer, readLogFile } from '../rollout/read-logs.ts';
import type { LoadBalancerMoment, RunSettings } from '../run-record.ts';
import { awaitCondition } from './await-condition.ts';
import { programPath } from './programs.ts';
import type { Experiment } from './experiment.ts';

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
  readonly program: LabProcess;
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
    program,
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
