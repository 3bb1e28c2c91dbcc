import { createHash } from 'node:crypto';
import { type IpAddress, type ServiceKey, tryParseIp } from '@switchyard/core';
import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';

/** Labels of a load balancer's container. */
export const labels = {
  /** Name of the cluster. */
  cluster: 'dev.switchyard.lb.cluster',
  /** `namespace/name` of the Service. */
  service: 'dev.switchyard.lb.service',
  /** Its virtual addresses, with a space between them. */
  addresses: 'dev.switchyard.lb.addresses',
  /** Stands for all that only a new container can change: see `containerVersion`. */
  version: 'dev.switchyard.lb.version',
  /** `true` if the cluster was found by its kind containers, so that it is gone when they are. */
  discovered: 'dev.switchyard.lb.discovered',
} as const;

/** kind's own labels: https://github.com/kubernetes-sigs/kind */
export const kindLabels = {
  cluster: 'io.x-k8s.kind.cluster',
  /** `control-plane`, `worker` or `external-load-balancer`. */
  role: 'io.x-k8s.kind.role',
} as const;

/** Names of clusters that `./dev e2e` makes for one run. Only a controller that is given the full name serves them. */
export const testClusterPrefix = 'swy-e2e-';

/** Whether it can be the name of a cluster: it becomes a part of names of containers and of HAProxy's backends. kind's own rule is narrower. */
export function isClusterName(text: string): boolean {
  return /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(text);
}

const prefix = 'switchyard-lb';

/**
 * The name of a load balancer's container: `switchyard-lb-<cluster>-<hash>`. The engine gives a name only once, which keeps two
 * controllers from making two of them. The cluster's name is one by `isClusterName`.
 */
export function containerName({ cluster, service }: LoadBalancerId): string {
  const hash = createHash('sha256').update(service).digest('hex').slice(0, 12);
  return `${prefix}-${cluster}-${hash}`;
}

/** Owner of a container with these labels; undefined unless this controller made it. */
export function idOf(all: Readonly<Record<string, string>>): LoadBalancerId | undefined {
  const cluster = all[labels.cluster];
  const service = all[labels.service];
  if (cluster === undefined || service === undefined || !/^[^/]+\/[^/]+$/.test(service)) return undefined;
  return { cluster, service: service as ServiceKey }; // the label was written from a ServiceKey
}

/** The virtual addresses in the labels. */
export function addressesOf(all: Readonly<Record<string, string>>): readonly IpAddress[] {
  return (all[labels.addresses] ?? '').split(' ').flatMap((text) => tryParseIp(text) ?? []);
}
