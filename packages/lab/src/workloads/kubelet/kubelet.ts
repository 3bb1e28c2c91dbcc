import { isDeepStrictEqual } from 'node:util';
import { availableParallelism, release, totalmem } from 'node:os';
import { apiResources, type Condition, type Node, type ObjectClient, type Pod } from '@switchyard/core/kubernetes';
import { ipFamilies } from '@switchyard/core';
import type { Lab, LabNode } from '../../lab.ts';
import type { ControllerContext } from '../context.ts';
import { KeyedRunner } from '../keyed-runner.ts';
import { findCondition, isPodEnded, isPodTerminating, objectKey, splitKey } from '../facts.ts';
import type { WorkloadEvent } from '../workload-event.ts';
import { PodWorker } from './pod-worker.ts';
import { podStatus } from './pod-status.ts';
import { createNodeProbes, type NodeProbes } from './readiness.ts';

/** Lab, node and event callback of a kubelet. */
export interface KubeletOptions {
  readonly lab: Lab;
  readonly node: LabNode;
  readonly emit: (event: WorkloadEvent) => void;
}

/**
 * The kubelet of one node. Disposing it kills its pods' processes and removes their namespaces but leaves the pod
 * objects; the next kubelet starts them again, as restarts, at the same addresses.
 */
export class Kubelet implements AsyncDisposable {
  readonly #context: ControllerContext;
  readonly #options: KubeletOptions;
  readonly #probes: NodeProbes = createNodeProbes();
  readonly #statuses: KeyedRunner;
  readonly #removals: KeyedRunner;
  readonly #workersByUid = new Map<string, PodWorker>();
  /** End of the last worker of each name: a new pod of the same name must wait for the removal of the old namespace. */
  readonly #lastByKey = new Map<string, Promise<void>>();
  #isStopped = false;

  constructor(context: ControllerContext, options: KubeletOptions) {
    this.#context = context;
    this.#options = options;
    const name = `kubelet ${options.node.nodeName}`;
    this.#statuses = new KeyedRunner(name, context, (key, signal) => this.#writeStatus(key, signal));
    this.#removals = new KeyedRunner(name, context, (key, signal) => this.#removeObject(key, signal));
    context.watches.pods.subscribe(({ before, after }) => this.#onPod(after ?? before, after === undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    for (const worker of this.#workersByUid.values()) worker.abandon();
    // Writers first: a worker may be waiting for its status to be written.
    await Promise.all([this.#statuses[Symbol.asyncDispose](), this.#removals[Symbol.asyncDispose]()]);
    await Promise.all(this.#lastByKey.values());
    await this.#probes[Symbol.asyncDispose]();
  }

  #onPod(pod: Pod | undefined, isGone: boolean): void {
    if (this.#isStopped || pod?.spec?.nodeName !== this.#options.node.nodeName) return;
    const uid = pod.metadata.uid ?? '';
    const worker = this.#workersByUid.get(uid);
    if (isGone) {
      // Only now: changes before the object's deletion must not look like those of a new pod.
      worker?.abandon();
      this.#workersByUid.delete(uid);
    } else if (worker !== undefined) {
      worker.update(pod);
      // Another controller may have opened a gate.
      if (pod.spec?.readinessGates !== undefined) this.#statuses.poke(`${objectKey(pod)}/${uid}`);
    } else if (!isPodEnded(pod) || isPodTerminating(pod)) this.#startWorker(pod, uid);
  }

  #startWorker(pod: Pod, uid: string): void {
    const key = objectKey(pod);
    const statusKey = `${key}/${uid}`;
    const worker = new PodWorker(
      {
        ...this.#context,
        ...this.#options,
        pod,
        probes: this.#probes,
        onChange: () => this.#statuses.poke(statusKey),
        writeStatus: () => this.#statuses.settle(statusKey),
        removeObject: async () => this.#removals.poke(statusKey),
      },
      this.#lastByKey.get(key) ?? Promise.resolve(),
    );
    this.#workersByUid.set(uid, worker);
    const finished = worker.finished.then(() => {
      if (this.#lastByKey.get(key) === finished) this.#lastByKey.delete(key);
    });
    this.#lastByKey.set(key, finished);
  }

  async #writeStatus(statusKey: string, signal: AbortSignal): Promise<void> {
    const { key, uid } = splitStatusKey(statusKey);
    const worker = this.#workersByUid.get(uid);
    const pod = await this.#context.api.find(apiResources.pods, splitKey(key), signal);
    if (worker === undefined || pod === undefined || pod.metadata.uid !== uid) return;
    const status = podStatus(pod, worker.view);
    if (isDeepStrictEqual(status, pod.status)) return;
    await this.#context.api.updateStatus(apiResources.pods, { ...pod, status }, signal);
  }

  async #removeObject(statusKey: string, signal: AbortSignal): Promise<void> {
    const { key, uid } = splitStatusKey(statusKey);
    const { api } = this.#context;
    const pod = await api.find(apiResources.pods, splitKey(key), signal);
    if (pod !== undefined && pod.metadata.uid === uid) {
      await api.delete(apiResources.pods, splitKey(key), { gracePeriodSeconds: 0 }, signal);
    }
  }
}

function splitStatusKey(statusKey: string): { readonly key: string; readonly uid: string } {
  const end = statusKey.lastIndexOf('/');
  return { key: statusKey.slice(0, end), uid: statusKey.slice(end + 1) };
}

/** The Node object of a lab node as its kubelet registers it. `at` is an API time. */
function nodeObject(node: LabNode, at: string): Node {
  const podCIDRs = ipFamilies.flatMap((family) => node.podCidrs[family] ?? []);
  const resources = {
    cpu: String(availableParallelism()),
    memory: `${Math.floor(totalmem() / 1024)}Ki`,
    pods: '110',
  };
  const internal = ipFamilies.flatMap((family) => node.addresses[family] ?? []);
  return {
    metadata: {
      name: node.nodeName,
      labels: {
        'kubernetes.io/arch': process.arch === 'x64' ? 'amd64' : process.arch,
        'kubernetes.io/hostname': node.nodeName,
        'kubernetes.io/os': 'linux',
        'topology.kubernetes.io/zone': node.zone,
      },
    },
    spec: { ...(podCIDRs[0] === undefined ? {} : { podCIDR: podCIDRs[0] }), podCIDRs },
    status: {
      addresses: [
        ...internal.map((address) => ({ type: 'InternalIP', address })),
        { type: 'Hostname', address: node.nodeName },
      ],
      conditions: [readyCondition(at)],
      capacity: resources,
      allocatable: resources,
      nodeInfo: { kubeletVersion: 'v1.36.2', kernelVersion: release(), operatingSystem: 'linux' },
    },
  };
}

/** Creates the Node if it is missing and sets Ready. Keeps fields of other writers. */
export async function registerNode(api: ObjectClient, node: LabNode, at: string, signal: AbortSignal): Promise<void> {
  const wanted = nodeObject(node, at);
  const present = await api.find(apiResources.nodes, { name: node.nodeName }, signal);
  const current = present ?? (await api.create(apiResources.nodes, wanted, signal));
  if (findCondition(current.status?.conditions, 'Ready')?.status === 'True') return;
  const status = { ...wanted.status, ...current.status, conditions: [readyCondition(at)] };
  await api.updateStatus(apiResources.nodes, { ...current, status }, signal);
}

function readyCondition(at: string): Condition {
  return {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    message: 'the lab is running pods of this node',
    lastTransitionTime: at,
    lastHeartbeatTime: at,
  };
}
