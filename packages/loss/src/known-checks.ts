import { millis, seconds } from '@switchyard/core';
import type { CheckTiming } from './check-timing.ts';

/** A load balancer whose health checks are known by name; docs/operate/health-check-profiles.md links the sources. */
export type KnownCheck =
  | 'cloud-provider-kind'
  | 'cloud-provider-kind-envoy'
  | 'aws-nlb'
  | 'aws-nlb-default'
  | 'google-nlb'
  | 'azure-lb'
  | 'digitalocean-lb'
  | 'oci-lb'
  | 'switchyard'
  | 'switchyard-fast';

/** Timing of other load balancers: DOWN nodes are checked as often as UP ones. Default of `whenNoneUp`: connections are closed. */
function faithful(
  timing: Pick<CheckTiming, 'interval' | 'fall' | 'rise' | 'timeout'>,
  whenNoneUp: 'close' | 'all' = 'close',
): CheckTiming {
  return { ...timing, downInterval: timing.interval, whenNoneUp, lastUpFor: millis(0) };
}

/**
 * Their timing, for checks of the healthCheckNodePort (`externalTrafficPolicy: Local`).
 *
 * - `cloud-provider-kind`: its first releases, which ran HAProxy with `inter 5s fall 3 rise 1`.
 * - `cloud-provider-kind-envoy`: its releases of today. Every 2 s; Envoy ignores `unhealthy_threshold` for unexpected HTTP
 *   statuses and takes a node out at the first one, but only at the second check that times out, after 3 s each. HAProxy has one count for both: a
 *   node whose check times out goes at the first one here.
 * - `aws-nlb`: what the AWS Load Balancer Controller sets for instance targets of Local Services
 *   (`defaultHealthCheck*ForInstanceModeLocal`: 10 s, timeout 6 s, 2 and 2). While no target is healthy it fails open: all are used.
 * - `aws-nlb-default`: the defaults of a target group (CreateTargetGroup: 30 s, 5 good, 2 bad; 6 s for HTTP). It
 *   fails open as well.
 * - `google-nlb`: cloud-provider-gcp and ingress-gce (`gceHcCheckIntervalSeconds` 8, timeout 1 s, 1 good, 3 bad). All nodes are its last
 *   resort while none is healthy.
 * - `azure-lb`: cloud-provider-azure (`HealthProbeDefaultProbeInterval` 5, `HealthProbeDefaultNumOfProbe` 2 as `probeThreshold`,
 *   which counts in both directions).
 * - `digitalocean-lb`: digitalocean-cloud-controller-manager (3 s, timeout 5 s, 3 bad, 5 good).
 * - `oci-lb`: oci-cloud-controller-manager (10 s, timeout 3 s, 3 retries, which count in both directions).
 * - `switchyard`: ours. As quick as one failure every 2 s, without the hole: DOWN nodes are checked often, and while no node is UP, nodes
 *   that were UP a moment ago are used.
 * - `switchyard-fast`: ours, for applications that go on serving for little more than a second.
 */
export const knownChecks: Readonly<Record<KnownCheck, CheckTiming>> = {
  'cloud-provider-kind': faithful({ interval: seconds(5), fall: 3, rise: 1, timeout: undefined }),
  'cloud-provider-kind-envoy': faithful({ interval: seconds(2), fall: 1, rise: 1, timeout: seconds(3) }),
  'aws-nlb': faithful({ interval: seconds(10), fall: 2, rise: 2, timeout: seconds(6) }, 'all'),
  'aws-nlb-default': faithful({ interval: seconds(30), fall: 2, rise: 5, timeout: seconds(6) }, 'all'),
  'google-nlb': faithful({ interval: seconds(8), fall: 3, rise: 1, timeout: seconds(1) }, 'all'),
  'azure-lb': faithful({ interval: seconds(5), fall: 2, rise: 2, timeout: undefined }),
  'digitalocean-lb': faithful({ interval: seconds(3), fall: 3, rise: 5, timeout: seconds(5) }),
  'oci-lb': faithful({ interval: seconds(10), fall: 3, rise: 3, timeout: seconds(3) }),
  switchyard: {
    interval: seconds(2),
    downInterval: millis(250),
    fall: 1,
    rise: 1,
    timeout: undefined,
    whenNoneUp: 'lastUp',
    lastUpFor: seconds(10),
  },
  'switchyard-fast': {
    interval: millis(500),
    downInterval: millis(250),
    fall: 2,
    rise: 1,
    timeout: seconds(1),
    whenNoneUp: 'lastUp',
    lastUpFor: seconds(10),
  },
};
