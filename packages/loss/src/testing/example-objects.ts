import type { Deployment, Node, Pod, Service } from '@switchyard/core/kubernetes';
import type { WorkloadObjects } from '../workload/workload.ts';

/** A Service with its Deployments and their surroundings. */
export interface ExampleObjects extends WorkloadObjects {
  readonly deployments: readonly Deployment[];
}

/** Differences from the plain example, as the API writes them. */
export interface ExampleChanges {
  readonly service?: object;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly deployment?: object;
  readonly pod?: object;
  readonly container?: object;
  readonly pods?: readonly unknown[];
  readonly nodes?: readonly unknown[];
}

/** A node by name; taints, labels and the like by `spec` and `labels`. */
export function exampleNode(name: string, spec: object = {}, labels: object = {}): unknown {
  return { metadata: { name, labels }, spec, status: { addresses: [{ type: 'InternalIP', address: '172.18.0.2' }] } };
}

/**
 * A LoadBalancer Service with `externalTrafficPolicy: Local` in front of one replica on two nodes: at most one pod per node, a
 * readiness probe, 30 s of grace, no preStop hook.
 */
export function exampleObjects(changes: ExampleChanges = {}): ExampleObjects {
  const labels = { app: 'web' };
  const service = {
    metadata: { namespace: 'shop', name: 'web', annotations: changes.annotations ?? {} },
    spec: {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      selector: labels,
      ports: [{ port: 80, targetPort: 'http' }],
      ...changes.service,
    },
  };
  const container = {
    name: 'app',
    ports: [{ name: 'http', containerPort: 8080 }],
    readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
    ...changes.container,
  };
  const deployment = {
    metadata: { namespace: 'shop', name: 'web' },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'sidecar' }, container], affinity: antiAffinity(labels), ...changes.pod },
      },
      ...changes.deployment,
    },
  };
  // Raw JSON, as the API server sends it.
  return {
    service: service as unknown as Service,
    deployments: [deployment as unknown as Deployment],
    pods: (changes.pods ?? []) as Pod[],
    nodes: (changes.nodes ?? [exampleNode('node1'), exampleNode('node2')]) as Node[],
  };
}

function antiAffinity(labels: object): object {
  const term = { labelSelector: { matchLabels: labels }, topologyKey: 'kubernetes.io/hostname' };
  return { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
}
