import { type Millis, millis, seconds } from '@switchyard/core';
import type { Container, Deployment, Node, Pod, PodSpec, Service } from '@switchyard/core/kubernetes';
import type { RolloutStrategy } from '../rollout-setting.ts';
import { type PreStop, preStopOf } from './pre-stop.ts';
import { isUsableNode } from './usable-node.ts';

/** The API objects around a Deployment that decide what its rollouts lose. */
export interface WorkloadObjects {
  readonly service: Service;
  /** The pods that the Service selects now. */
  readonly pods: readonly Pod[];
  readonly nodes: readonly Node[];
}

/** When a container counts as ready. */
export interface ReadinessProbe {
  readonly initialDelay: Millis;
  readonly period: Millis;
  readonly successes: number;
}

/** The settings of a Deployment that decide what its rollouts lose. */
export interface Workload {
  readonly name: string;
  readonly replicas: number;
  readonly strategy: RolloutStrategy;
  readonly minReady: Millis;
  /** Undefined: the pod is ready as soon as it runs. */
  readonly readinessProbe: ReadinessProbe | undefined;
  readonly preStop: PreStop;
  readonly gracePeriod: Millis;
  /** Whether pods of the Deployment may never share a node (required anti-affinity by host name). */
  readonly spread: 'perNode' | 'anywhere';
  /** Nodes that can run its pods and that load balancers may use. */
  readonly nodes: number;
  /** From a pod's creation until it is Ready. */
  readonly startup: Millis;
  /** Where `startup` comes from. */
  readonly startupFrom: 'pods' | 'probe';
}

/** `1 replica on 2 nodes, at most one per node; RollingUpdate with maxSurge 1, maxUnavailable 0; minReadySeconds 0`. */
export function settingsText({ replicas, nodes, spread, strategy, minReady }: Workload): string {
  const where = `${replicas} ${replicas === 1 ? 'replica' : 'replicas'} on ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`;
  const one = spread === 'perNode' ? ', at most one per node' : '';
  const how =
    strategy.kind === 'Recreate'
      ? 'Recreate'
      : `RollingUpdate with maxSurge ${strategy.maxSurge}, maxUnavailable ${strategy.maxUnavailable}`;
  return `${where}${one}; ${how}; minReadySeconds ${minReady / 1000}`;
}

/** Reads a Deployment, with the API server's defaults for missing fields. */
export function workloadOf(deployment: Deployment, { service, pods, nodes }: WorkloadObjects): Workload {
  const spec = deployment.spec;
  const template = spec?.template.spec;
  const replicas = spec?.replicas ?? 1;
  const container = servingContainer(template, service);
  const readinessProbe = probeOf(container);
  const observed = observedStartup(pods.filter((pod) => isPodOf(pod, deployment)));
  return {
    name: deployment.metadata?.name ?? '',
    replicas,
    strategy: strategyOf(deployment, replicas),
    minReady: seconds(spec?.minReadySeconds ?? 0),
    readinessProbe,
    preStop: preStopOf(container ?? {}),
    gracePeriod: seconds(template?.terminationGracePeriodSeconds ?? 30),
    spread: spreadOf(deployment),
    nodes: nodes.filter((node) => isUsableNode(node, template)).length,
    startup: observed ?? probedStartup(readinessProbe),
    startupFrom: observed === undefined ? 'probe' : 'pods',
  };
}

/** The container that has the Service's first target port; the first one, if none says so. Undefined: there is no container. */
export function servingContainer(template: PodSpec | undefined, service: Service): Container | undefined {
  const [port] = service.spec?.ports ?? [];
  const target = port?.targetPort ?? port?.port;
  const containers = template?.containers ?? [];
  const isTarget = (one: Container): boolean =>
    one.ports?.some(({ name, containerPort }) => name === target || containerPort === target) ?? false;
  return containers.find(isTarget) ?? containers[0];
}

function probeOf(container: Container | undefined): ReadinessProbe | undefined {
  const probe = container?.readinessProbe;
  if (probe === undefined || probe === null) return undefined;
  return {
    initialDelay: seconds(probe.initialDelaySeconds ?? 0),
    period: seconds(probe.periodSeconds ?? 10),
    successes: probe.successThreshold ?? 1,
  };
}

function strategyOf({ spec }: Deployment, replicas: number): RolloutStrategy {
  if (spec?.strategy?.type === 'Recreate') return { kind: 'Recreate' };
  const { maxSurge = '25%', maxUnavailable = '25%' } = spec?.strategy?.rollingUpdate ?? {};
  const surge = countOf(maxSurge, replicas, Math.ceil);
  const unavailable = countOf(maxUnavailable, replicas, Math.floor);
  // The Deployment controller lets at least one pod go where both come to nothing.
  return {
    kind: 'RollingUpdate',
    maxSurge: surge,
    maxUnavailable: surge === 0 && unavailable === 0 ? 1 : unavailable,
  };
}

function countOf(value: unknown, replicas: number, round: (value: number) => number): number {
  const text = String(value);
  return text.endsWith('%') ? round((Number.parseFloat(text) * replicas) / 100) : Number(text);
}

function spreadOf({ spec }: Deployment): 'perNode' | 'anywhere' {
  const labels = spec?.template.metadata?.labels ?? {};
  const terms = spec?.template.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const hasSelfAntiAffinity = terms.some(
    ({ topologyKey, labelSelector }) =>
      topologyKey === 'kubernetes.io/hostname' &&
      Object.entries(labelSelector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value) &&
      (labelSelector?.matchExpressions ?? []).length === 0,
  );
  return hasSelfAntiAffinity ? 'perNode' : 'anywhere';
}

function isPodOf({ metadata }: Pod, { metadata: owner }: Deployment): boolean {
  // The pod is a ReplicaSet's, whose name begins with that of its Deployment.
  return metadata?.ownerReferences?.some(({ kind, name }) => isSetOf(kind, name, owner?.name ?? '')) ?? false;
}

function isSetOf(kind: string, name: string, deployment: string): boolean {
  return kind === 'ReplicaSet' && name.startsWith(`${deployment}-`) && !name.slice(deployment.length + 1).includes('-');
}

/** Shortest time to Ready among the running pods; later changes of readiness make other pods look slow. */
function observedStartup(pods: readonly Pod[]): Millis | undefined {
  const durations = pods.flatMap(({ metadata, status }) => {
    const ready = status?.conditions?.find(({ type, status }) => type === 'Ready' && status === 'True');
    const duration = Date.parse(String(ready?.lastTransitionTime)) - Date.parse(String(metadata?.creationTimestamp));
    return Number.isFinite(duration) && duration >= 0 ? [duration] : [];
  });
  return durations.length === 0 ? undefined : millis(Math.max(500, Math.min(...durations)));
}

function probedStartup(probe: ReadinessProbe | undefined): Millis {
  if (probe === undefined) return seconds(1);
  return millis(Math.max(1000, probe.initialDelay + probe.successes * probe.period));
}
