import type { Pod } from '@switchyard/core/kubernetes';
import { trafficPodArguments } from '@switchyard/lab';
import { runLabel } from './cluster-options.ts';

/** One pod of a run. */
export interface PodPlan {
  readonly name: string;
  /** Name of the Node, which pods name themselves instead of the scheduler. */
  readonly node: string;
  readonly isOnHostNetwork: boolean;
  /** Port of its control API. */
  readonly port: number;
}

/** Settings that all pods of a run share. */
export interface PodSettings {
  readonly run: string;
  readonly namespace: string;
  readonly image: string;
  /** Command instead of the image's own program; undefined: none. */
  readonly command: readonly string[] | undefined;
  /** SHA-256 of the token, hexadecimal. The token itself is not stored in the cluster. */
  readonly tokenDigest: string;
}

/** Any user but root; the program needs no right and writes no file. */
const userId = 65_532;

/**
 * A pod that sends and answers packets. It has no capability and no service account, and uses the host's network only for the node's
 * addresses. It is not restarted, so that its end can be reported.
 */
export function podManifest({ name, node, isOnHostNetwork, port }: PodPlan, settings: PodSettings): Pod {
  const { run, namespace, image, command, tokenDigest } = settings;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { [runLabel]: run, 'app.kubernetes.io/name': 'switchyard-conformance' } },
    spec: {
      nodeName: node,
      hostNetwork: isOnHostNetwork,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: userId,
        runAsGroup: userId,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'traffic',
          image,
          imagePullPolicy: 'IfNotPresent',
          ...(command === undefined ? {} : { command: [...command] }),
          args: [...trafficPodArguments({ pod: name, node, port, tokenDigest })],
          resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '256Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          terminationMessagePolicy: 'FallbackToLogsOnError',
        },
      ],
    },
  };
}
