import type { IpFamily } from '@switchyard/core';
import type { DaemonSet, Deployment, PodSpec, PodTemplate, Service } from '@switchyard/core/kubernetes';

/** Options that change the measured example. */
export interface ZeroappOptions {
  /** Default `default`. */
  readonly namespace?: string;
  /** Name of both objects and value of their `app` label. Default `zeroapp`. */
  readonly name?: string;
  /** Default 1. */
  readonly replicas?: number;
  /** Seconds that the app serves on after SIGTERM. Default 30; 0 stops at once. */
  readonly delayShutdown?: number;
  /** Seconds between deletion and SIGKILL. Default 30. */
  readonly terminationGracePeriod?: number;
  /** Seconds of `preStop` sleep. Default none. */
  readonly preStopSleep?: number;
  readonly externalTrafficPolicy?: 'Cluster' | 'Local';
  readonly maxSurge?: number | string;
  readonly maxUnavailable?: number | string;
  /** Port of the app. Default 8080. */
  readonly port?: number;
  /** `initialDelaySeconds` of the readiness probe. Default 0. */
  readonly readyAfter?: number;
  /** A TCP port, of pods and Service, whose connections stay open: it sends the echo object, then echoes lines. Default: none. */
  readonly echoPort?: number;
  /** Families of the Service. Default: the cluster's first. */
  readonly ipFamilies?: readonly IpFamily[];
}

/** The objects of the example, ready to be created. The DaemonSet is in place of the Deployment: a pod on every node. */
export interface Zeroapp {
  readonly deployment: Deployment;
  readonly daemonSet: DaemonSet;
  readonly service: Service;
}

/**
 * The rolling-update example: one replica that never shares a node with another one, so that a rollout moves it to
 * another node, behind a LoadBalancer Service with externalTrafficPolicy Local. Durations are in seconds of
 * real time; the workloads' time scale shrinks them.
 */
export function zeroapp(options: ZeroappOptions = {}): Zeroapp {
  const { namespace = 'default', name = 'zeroapp', maxSurge, maxUnavailable } = options;
  const labels = { app: name };
  const metadata = { name, namespace, labels };
  const selector = { matchLabels: labels };
  const template = podTemplate(options, labels);
  const { affinity: _, ...spec } = template.spec;
  const rollingUpdate = { maxSurge: maxSurge ?? '25%', maxUnavailable: maxUnavailable ?? '25%' };
  const daemonUpdate = { maxSurge: maxSurge ?? 0, maxUnavailable: maxUnavailable ?? 1 };
  return {
    deployment: {
      metadata,
      spec: { replicas: options.replicas ?? 1, selector, strategy: { type: 'RollingUpdate', rollingUpdate }, template },
    },
    daemonSet: {
      metadata,
      spec: {
        selector,
        template: { ...template, spec },
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: daemonUpdate },
      },
    },
    service: { metadata, spec: serviceSpec(options, labels) },
  };
}

function serviceSpec(
  options: ZeroappOptions,
  selector: Readonly<Record<string, string>>,
): NonNullable<Service['spec']> {
  const { externalTrafficPolicy = 'Local', echoPort, ipFamilies } = options;
  const echo =
    echoPort === undefined ? [] : [{ name: 'echo', protocol: 'TCP', port: echoPort, targetPort: 'echo' } as const];
  const families: Pick<NonNullable<Service['spec']>, 'ipFamilies' | 'ipFamilyPolicy'> = ipFamilies === undefined
    ? {}
    : { ipFamilies, ipFamilyPolicy: ipFamilies.length > 1 ? 'RequireDualStack' : 'SingleStack' };
  return {
    type: 'LoadBalancer',
    externalTrafficPolicy,
    ...families,
    selector,
    ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 'http' }, ...echo],
  };
}

function podTemplate(
  options: ZeroappOptions,
  labels: Readonly<Record<string, string>>,
): PodTemplate & { readonly spec: PodSpec } {
  const { port = 8080, echoPort, delayShutdown = 30, preStopSleep } = options;
  const echoFlag = echoPort === undefined ? [] : [`--echo-port=${echoPort}`];
  const echo = echoPort === undefined ? [] : [{ name: 'echo', containerPort: echoPort, protocol: 'TCP' } as const];
  return {
    metadata: { labels },
    spec: {
      terminationGracePeriodSeconds: options.terminationGracePeriod ?? 30,
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { labelSelector: { matchLabels: labels }, topologyKey: 'kubernetes.io/hostname' },
          ],
        },
      },
      containers: [
        {
          name: 'app',
          image: 'agnhost:2.59',
          args: ['netexec', `--http-port=${port}`, '--udp-port=-1', `--delay-shutdown=${delayShutdown}`, ...echoFlag],
          ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }, ...echo],
          readinessProbe: {
            httpGet: { path: '/healthz', port: 'http' },
            periodSeconds: 1,
            ...(options.readyAfter === undefined ? {} : { initialDelaySeconds: options.readyAfter }),
          },
          ...(preStopSleep === undefined ? {} : { lifecycle: { preStop: { sleep: { seconds: preStopSleep } } } }),
        },
      ],
    },
  };
}
