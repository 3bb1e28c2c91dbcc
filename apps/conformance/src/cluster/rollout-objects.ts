import type { IpFamily } from '@switchyard/core';
import type { DaemonSet, Deployment, PodSpec, PodTemplate, Service } from '@switchyard/core/kubernetes';
import type { RolloutKind } from '../model/rollout.ts';
import { type NodePair, runLabel } from './preflight.ts';
import { podManifest, podPort, type PodSettings } from './start-pods.ts';

/** Ports of the app's Service: HTTP, and echo servers whose connections stay open. */
export const appPort = 80;
export const appEchoPort = 7000;

/** Ports of the app's pods. */
const [httpPort, echoPort] = [8080, 7000];

/** A rolling update of a cluster. */
export interface RolloutPlan {
  readonly kind: RolloutKind;
  readonly family: IpFamily;
  /** Name of all objects, and value of their label `app`. */
  readonly name: string;
  /** Seconds between a pod's deletion and SIGKILL, during which it serves. */
  readonly gracePeriod: number;
  readonly nodes: NodePair;
  readonly settings: PodSettings;
}

/**
 * The app of a rolling update. A Deployment has one pod, whose successor is on the other node; a DaemonSet has one on each of the two
 * nodes.
 */
export function rolloutObjects(plan: RolloutPlan): {
  readonly deployment: Deployment;
  readonly daemonSet: DaemonSet;
  readonly service: Service;
} {
  const { kind, family, name, settings } = plan;
  const labels = { app: name, [runLabel]: settings.run };
  const metadata = { name, namespace: settings.namespace, labels };
  const selector = { matchLabels: { app: name } };
  const { maxSurge, maxUnavailable } = kind.strategy;
  const rollingUpdate = {
    ...(maxSurge === undefined ? {} : { maxSurge }),
    ...(maxUnavailable === undefined ? {} : { maxUnavailable }),
  };
  const strategy = { type: 'RollingUpdate', rollingUpdate };
  const template = (isAlone: boolean): PodTemplate => ({ metadata: { labels }, spec: podSpec(plan, isAlone) });
  return {
    deployment: { metadata, spec: { replicas: 1, selector, strategy, template: template(true) } },
    daemonSet: { metadata, spec: { selector, template: template(false), updateStrategy: strategy } },
    service: {
      metadata,
      spec: {
        // With policy Local only a load balancer follows the pods from node to node.
        type: kind.policy === 'Local' ? 'LoadBalancer' : 'NodePort',
        externalTrafficPolicy: kind.policy,
        ipFamilies: [family],
        ipFamilyPolicy: 'SingleStack',
        selector: { app: name },
        ports: [
          { name: 'http', protocol: 'TCP', port: appPort, targetPort: 'http' },
          { name: 'echo', protocol: 'TCP', port: appEchoPort, targetPort: 'echo' },
        ],
      },
    },
  };
}

/** The pod of `podManifest`, which names itself after the object that the controller makes. */
function podSpec({ name, gracePeriod, nodes, settings }: RolloutPlan, isAlone: boolean): PodSpec {
  const itself = { name: '$(POD_NAME)', node: '$(NODE_NAME)', isOnHostNetwork: false, port: podPort };
  const app = { http: httpPort, tcp: echoPort, delayShutdown: gracePeriod };
  const { spec } = podManifest({ ...itself, app }, settings);
  const { nodeName: _node, containers = [], ...rest } = spec ?? { containers: [] };
  const fieldEnv = (variable: string, fieldPath: string) => ({
    name: variable,
    valueFrom: { fieldRef: { fieldPath } },
  });
  return {
    ...rest,
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: gracePeriod,
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          // A term names a single node.
          nodeSelectorTerms: [nodes.node1, nodes.node2].map((node) => ({
            matchFields: [{ key: 'metadata.name', operator: 'In', values: [node.name] }],
          })),
        },
      },
      ...(isAlone ? { podAntiAffinity: apartFrom(name) } : {}),
    },
    containers: containers.map((container) => ({
      ...container,
      env: [fieldEnv('POD_NAME', 'metadata.name'), fieldEnv('NODE_NAME', 'spec.nodeName')],
      ports: [
        { name: 'http', containerPort: httpPort, protocol: 'TCP' },
        { name: 'echo', containerPort: echoPort, protocol: 'TCP' },
      ],
      readinessProbe: { httpGet: { path: '/readyz', port: 'http' }, periodSeconds: 1 },
    })),
  };
}

function apartFrom(app: string): NonNullable<NonNullable<PodSpec['affinity']>['podAntiAffinity']> {
  const labelSelector = { matchLabels: { app } };
  return {
    requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector, topologyKey: 'kubernetes.io/hostname' }],
  };
}
