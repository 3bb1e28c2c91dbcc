import type { IpFamily } from '@switchyard/core';
import type { ObjectClient } from '@switchyard/core/kubernetes';
import { createProber, type Lab, type LabHost, type LoadOptions, type LoadRun } from '@switchyard/lab';
import { type Prober, startLoad, type WorkloadEvent } from '@switchyard/lab';

/** Single requests of a sender. */
export type RequestProber = Pick<Prober, 'probe' | 'open'> & AsyncDisposable;

/** Sender of requests: a host of a lab, or a pod of a cluster. */
export interface RequestSender {
  /** Starts an open loop. */
  startLoad(options: LoadOptions): LoadRun;
  openProber(signal: AbortSignal): Promise<RequestProber>;
}

/** A node that runs pods of an app. */
export interface SiteNode {
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IpFamily, string>>>;
}

/** Environment of a rollout: a lab's cluster, or any other. */
export interface RolloutSite {
  readonly api: ObjectClient;
  /** Everything that happened to pods since the start. */
  readonly workloadEvents: readonly WorkloadEvent[];
  /** Nodes that the app's pods may run on. */
  readonly nodes: readonly SiteNode[];
  /** Sends requests from outside the cluster. */
  readonly outside: RequestSender;
}

/** The nodes and the outside of a lab. */
export function labSite(lab: Pick<Lab, 'nodes' | 'client'>): Pick<RolloutSite, 'nodes' | 'outside'> {
  return { nodes: lab.nodes, outside: hostSender(lab.client) };
}

/** A host of a lab as a sender. */
export function hostSender(host: LabHost): RequestSender {
  return {
    startLoad: (options) => startLoad(host, options),
    openProber: (signal) => createProber(host, signal),
  };
}
