import type { DataplaneName } from '@switchyard/scenarios';
import type { Clock, Random } from '@switchyard/core';
import type { ApiServerConnection } from '@switchyard/core/kubernetes';

/** What `--target cluster` works on. */
export interface ClusterBedOptions {
  readonly connection: ApiServerConnection;
  readonly clock: Clock;
  /** For names and ports that must differ from those of other runs: not the seed of the run. */
  readonly random: Random;
  /** Of echo and probe pods. Default: what `./dev image conformance` builds. */
  readonly image?: string | undefined;
  /** What runs in the place of the image's own program; for images that have it elsewhere. */
  readonly podCommand?: readonly string[] | undefined;
  /** Name of the node under test, and of the one that is the outside. Default: the first two that can be used, by name. */
  readonly nodes?: readonly [underTest: string, outside: string] | undefined;
  /** Go on although other Services of type LoadBalancer are there. Default false. */
  readonly mayHaveOtherLoadBalancers?: boolean;
  /** Leave everything in the cluster at the end. Default false. */
  readonly isKept?: boolean;
  /** Column head of reports. Default: `cluster-` and the mode. */
  readonly proxyName?: string | undefined;
  /** Whose answers are expected. Default: what the proxy on the node under test says at `127.0.0.1:10249/proxyMode`. */
  readonly dataplane?: DataplaneName | undefined;
  /** One line for each step that takes its time. */
  readonly onProgress?: (text: string) => void;
}

/** What pods run unless `image` says otherwise. */
export const defaultImage = 'switchyard/conformance:0.0.0';

/** On everything a run makes; its value is the run's name. */
export const runLabel = 'switchyard.dev/conformance-run';

/** No controller serves this class, so the status is the runner's to write. */
export const loadBalancerClass = 'switchyard.dev/conformance';
