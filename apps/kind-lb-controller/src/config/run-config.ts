import type { Cidr } from '@switchyard/core';
import type { LeaderTimings } from '@switchyard/core/kubernetes';
import type { LogLevel } from '@switchyard/host';
import type { AddressSource } from '../plan/ip-pool.ts';
import type { PlanDefaults } from '../plan/settings.ts';

/** One HAProxy in a network namespace for all load balancers: the lab. */
export interface ProcessConfig {
  readonly kind: 'process';
  readonly source: AddressSource;
  /** Where clients and nodes are; pool addresses are added there. Undefined: TCP only, on addresses that are there already. */
  readonly interfaceName: string | undefined;
  /** Name under /run/netns; undefined: our own. */
  readonly netns: string | undefined;
  readonly isKeptOnExit: boolean;
  /** The HAProxy program. */
  readonly haproxy: string;
  /** Absolute path. */
  readonly runDirectory: string;
}

/** A container for each load balancer. */
export interface DockerConfig {
  readonly kind: 'docker';
  /** `docker`, `podman`, `nerdctl`, or a path to one of them. */
  readonly engine: string;
  /** Network of kind's nodes. */
  readonly network: string;
  readonly image: string;
  /** Empty: the top end of the network's subnets. */
  readonly pool: readonly Cidr[];
  /** Address of this machine on which Service ports are published; undefined: they are not. */
  readonly publishOn: string | undefined;
}

/** Which clusters are served. */
export type ClustersConfig =
  /** The one that a kubeconfig file (absolute path) reaches. */
  | { readonly kind: 'kubeconfig'; readonly file: string; readonly name: string }
  /** kind's clusters on the container engine; no names: all of them. */
  | { readonly kind: 'discovery'; readonly names: readonly string[] };

/** Which Lease decides between several controllers of a cluster. */
export interface LeaseConfig {
  readonly namespace: string;
  readonly name: string;
  readonly timings: LeaderTimings;
}

/** The validated configuration. */
export interface RunConfig {
  readonly kind: 'run';
  readonly runtime: ProcessConfig | DockerConfig;
  readonly clusters: ClustersConfig;
  readonly defaults: PlanDefaults;
  /** Undefined: the operator disabled leader election. */
  readonly lease: LeaseConfig | undefined;
  /** Absolute path; undefined: no event log. */
  readonly eventLog: string | undefined;
  readonly logLevel: LogLevel;
}
