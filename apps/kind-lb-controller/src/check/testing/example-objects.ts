import type { V1Deployment, V1Node, V1Pod, V1Service } from '@kubernetes/client-node';
import type { ClusterObjects } from '../read-cluster.ts';

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
export function exampleObjects(changes: ExampleChanges = {}): ClusterObjects {
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
    service: service as unknown as V1Service,
    deployments: [deployment as unknown as V1Deployment],
    pods: (changes.pods ?? []) as V1Pod[],
    nodes: (changes.nodes ?? [exampleNode('node1'), exampleNode('node2')]) as V1Node[],
  };
}

function antiAffinity(labels: object): object {
  const term = { labelSelector: { matchLabels: labels }, topologyKey: 'kubernetes.io/hostname' };
  return { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
}
