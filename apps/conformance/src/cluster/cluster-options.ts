import type { DataplaneName } from '@switchyard/scenarios';
import type { Clock, Random } from '@switchyard/core';
import type { ApiServerConnection } from '@switchyard/core/kubernetes';

/** Settings of `--target cluster`. */
export interface ClusterEnvironmentOptions {
  readonly connection: ApiServerConnection;
  readonly clock: Clock;
  /** For names and ports that must differ between runs. Not derived from the run's seed. */
  readonly random: Random;
  /** Image of echo and probe pods. Default: the one that `./dev image conformance` builds. */
  readonly image?: string | undefined;
  /** Command instead of the image's own program, for images that have the program elsewhere. */
  readonly podCommand?: readonly string[] | undefined;
  /** Name of the node under test, and of the one that is the outside. Default: the first two that can be used, by name. */
  readonly nodes?: readonly [underTest: string, outside: string] | undefined;
  /** Go on although other Services of type LoadBalancer are there. Default false. */
  readonly mayHaveOtherLoadBalancers?: boolean;
  /** Leave everything in the cluster at the end. Default false. */
  readonly isKept?: boolean;
  /** Column head of reports. Default: `cluster-` and the mode. */
  readonly proxyName?: string | undefined;
  /** Dataplane whose answers are expected. Default: the mode that the proxy on the node under test reports at `127.0.0.1:10249/proxyMode`. */
  readonly dataplane?: DataplaneName | undefined;
  /** One line for each step that takes its time. */
  readonly onProgress?: (text: string) => void;
}

/** Default of `image`. */
export const defaultImage = 'switchyard/conformance:0.1.0';

/** Label of every object that a run makes; its value is the run's name. */
export const runLabel = 'switchyard.dev/conformance-run';

/** No controller serves this class, so the runner writes the status. */
export const loadBalancerClass = 'switchyard.dev/conformance';
