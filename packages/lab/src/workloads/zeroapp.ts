import type { Deployment, Service } from '../api-types.ts';

/** What may differ from the measured example. */
export interface ZeroappOptions {
  /** Default `default`. */
  readonly namespace?: string;
  /** Name of both objects and value of their `app` label. Default `zeroapp`. */
  readonly name?: string;
  /** Default 1. */
  readonly replicas?: number;
  /** Seconds that the app serves on after SIGTERM. Default 30; 0 is an app that stops at once. */
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
  /** Seconds that kubelet waits before it asks for the first time whether the app is ready. Default 0. */
  readonly readyAfter?: number;
}

/** The two objects of the example, ready to be created. */
export interface Zeroapp {
  readonly deployment: Deployment;
  readonly service: Service;
}

/**
 * The rolling-update example: one replica that may never share a node with another one, so that a rollout moves it to
 * another node, behind a LoadBalancer Service with externalTrafficPolicy Local. Durations are in seconds of
 * real time; the workloads' time scale shrinks them.
 */
export function zeroapp(options: ZeroappOptions = {}): Zeroapp {
  const { namespace = 'default', name = 'zeroapp', port = 8080 } = options;
  const labels = { app: name };
  const deployment: Deployment = {
    metadata: { name, namespace, labels },
    spec: {
      replicas: options.replicas ?? 1,
      selector: { matchLabels: labels },
      strategy: {
        type: 'RollingUpdate',
        rollingUpdate: { maxSurge: options.maxSurge ?? '25%', maxUnavailable: options.maxUnavailable ?? '25%' },
      },
      template: { metadata: { labels }, spec: podSpec(options, labels, port) },
    },
  };
  const service: Service = {
    metadata: { name, namespace, labels },
    spec: {
      type: 'LoadBalancer',
      externalTrafficPolicy: options.externalTrafficPolicy ?? 'Local',
      selector: labels,
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 'http' }],
    },
  };
  return { deployment, service };
}

type PodSpec = NonNullable<Deployment['spec']>['template']['spec'];

function podSpec(options: ZeroappOptions, labels: Readonly<Record<string, string>>, port: number): PodSpec {
  const delay = options.delayShutdown ?? 30;
  const preStop = options.preStopSleep;
  return {
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
        args: ['netexec', `--http-port=${port}`, '--udp-port=-1', `--delay-shutdown=${delay}`],
        ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }],
        readinessProbe: {
          httpGet: { path: '/healthz', port: 'http' },
          periodSeconds: 1,
          ...(options.readyAfter === undefined ? {} : { initialDelaySeconds: options.readyAfter }),
        },
        ...(preStop === undefined ? {} : { lifecycle: { preStop: { sleep: { seconds: preStop } } } }),
      },
    ],
  };
}
