import type { IpFamily } from '@switchyard/core';
import type { ObjectClient } from '@switchyard/core/kubernetes';
import { type Lab, type LabCluster, startCluster, type WorkloadEvent } from '@switchyard/lab';

/** Environment of an experiment: a lab of two nodes with an API server and controllers. Several rollouts may run on it, one after the other. */
export interface Experiment {
  readonly lab: Lab;
  readonly api: ObjectClient;
  readonly cluster: LabCluster;
  /** Everything that happened to pods since the start. */
  readonly workloadEvents: readonly WorkloadEvent[];
}

/** An experiment with a lab of its own. */
export interface OwnedExperiment extends Experiment, AsyncDisposable {}

/** Settings of an experiment. */
export interface ExperimentOptions {
  /** Name of the lab. */
  readonly name: string;
  /** Factor of all durations of pods; 1 is real time. */
  readonly timeScale: number;
  /** Default IPv4. */
  readonly ipFamilies?: readonly IpFamily[];
}

/** Builds a lab of two nodes with an API server and controllers, without agents and load balancer. */
export async function createExperiment(options: ExperimentOptions, signal: AbortSignal): Promise<OwnedExperiment> {
  const workloadEvents: WorkloadEvent[] = [];
  const cluster = await startCluster(
    {
      name: options.name,
      nodes: 2,
      ipFamilies: options.ipFamilies ?? ['IPv4'],
      hasDaemonSets: true,
      timeScale: options.timeScale,
      onWorkloadEvent: (event) => void workloadEvents.push(event),
    },
    signal,
  );
  return {
    lab: cluster.lab,
    api: cluster.api,
    cluster,
    workloadEvents,
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}
