import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Millis, millis, systemClock } from '@switchyard/core';
import { apiResources, type LabProcess } from '@switchyard/lab';
import { healthCheckFlags } from '../profiles.ts';
import { readLoadBalancer, readLogFile } from '../rollout/read-logs.ts';
import type { LoadBalancerMoment, RunSettings } from '../run-record.ts';
import { awaitCondition } from './await-condition.ts';
import { programPath } from './programs.ts';
import type { Stage } from './stage.ts';

/** Which Service, as the API names it. */
export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

/** The load-balancer controller with its HAProxy. Disposing stops it. */
export interface LoadBalancer extends AsyncDisposable {
  readonly program: LabProcess;
  /** What HAProxy holds of a Service's nodes, in order of time; every node is UP when it starts. */
  momentsOf(service: ServiceName): readonly LoadBalancerMoment[];
  /** Which nodes HAProxy holds UP for a Service now; those that it has not judged yet are left out. */
  judgedOf(service: ServiceName): ReadonlyMap<string, boolean>;
  /** Waits for the address in the Service's status. */
  addressOf(service: ServiceName, signal: AbortSignal): Promise<string>;
}

/** What a load balancer is started from. */
export type LoadBalancerSettings = Pick<RunSettings, 'healthCheck' | 'fastDrain'>;

const statusTimeout = millis(60_000);

/** The flags that every runtime has for what a run chooses. */
export function settingArgs({ healthCheck, fastDrain }: LoadBalancerSettings): readonly string[] {
  return [...healthCheckFlags(healthCheck), ...(fastDrain ? ['--fast-drain'] : [])];
}

/** Starts the controller with these flags, and follows its event log. */
export function runLoadBalancer(
  stage: Stage,
  options: { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> },
): LoadBalancer {
  const { lab, api, cluster } = stage;
  const startedAt = systemClock.now();
  const eventLog = join(lab.folder, `load-balancer-${Math.round(startedAt)}.jsonl`);
  writeFileSync(eventLog, '');
  const args = [`--kubeconfig=${cluster.insideKubeconfig}`, `--event-log=${eventLog}`, ...options.args];
  const program = lab.loadBalancer.spawn(programPath('switchyard-lb'), args, {
    logName: 'load-balancer',
    env: options.env,
  });
  const momentsSince = (service: ServiceName, nodes: readonly string[], at: Millis): readonly LoadBalancerMoment[] =>
    readLoadBalancer(readLogFile(eventLog), `${service.namespace}/${service.name}`, { at, nodes });
  return {
    program,
    momentsOf: (service) =>
      momentsSince(
        service,
        lab.nodes.map((node) => node.name),
        startedAt,
      ),
    judgedOf: (service) => new Map(momentsSince(service, [], startedAt).map((moment) => [moment.node, moment.isUp])),
    addressOf: (service, signal) =>
      awaitCondition(
        `an address in the status of Service ${service.namespace}/${service.name}`,
        async () => {
          const { status } = await api.get(apiResources.services, service, signal);
          return status?.loadBalancer?.ingress?.[0]?.ip;
        },
        { timeout: statusTimeout, programs: [program], signal },
      ),
    [Symbol.asyncDispose]: () => program.stop(),
  };
}
