import type { Pod } from '@switchyard/core/kubernetes';
import { trafficPodArguments } from '@switchyard/lab';
import { runLabel } from './cluster-options.ts';

/** One pod of a run. */
export interface PodPlan {
  readonly name: string;
  /** Name of the Node; pods are put there without asking the scheduler. */
  readonly node: string;
  readonly isOnHostNetwork: boolean;
  /** Where it takes orders. */
  readonly port: number;
}

/** What all pods of a run have in common. */
export interface PodSettings {
  readonly run: string;
  readonly namespace: string;
  readonly image: string;
  /** In the place of the image's own program; undefined: that. */
  readonly command: readonly string[] | undefined;
  /** SHA-256 of the token, hexadecimal: the token itself stands nowhere in the cluster. */
  readonly tokenDigest: string;
}

/** Any user but root; the program needs no right and writes no file. */
const userId = 65_532;

/**
 * A pod that sends and answers packets. It has no capability and no service account; on the host's network it is there to have the
 * node's addresses only. One that ends stays ended, so that what happened can be told.
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
