import type { Millis, Port } from '@switchyard/core';

/** How a load balancer finds out whether a node may get traffic. */
export interface HealthProfile {
  /** For people; a changed profile is called `<name>, changed`. */
  readonly name: string;
  /** Pause between two checks of one node that is UP. */
  readonly interval: Millis;
  /** Pause between two checks of a node that is DOWN. */
  readonly downInterval: Millis;
  /** Failed checks in a row until a node that is UP is taken out. */
  readonly fall: number;
  /** Good checks in a row until a node that is DOWN is used again. */
  readonly rise: number;
  /** Longest wait for the answer to a check once connected; undefined: the check must be over within `interval`. */
  readonly timeout: Millis | undefined;
  /** Longest wait for a connection to a node, for traffic; checks use it too where it is less than `interval`. */
  readonly connectTimeout: Millis;
  /** Where `externalTrafficPolicy: Cluster` is checked: the proxy's own health. `Local` has a port per Service. */
  readonly clusterPort: Port;
  /**
   * Treatment of connections while no node is UP. `close`: closed at once. `all`: they go to all nodes that do not drain, regardless of their
   * answers, also known as fail open; a node without an endpoint drops its part. `lastUp`, which no cloud has: they go to nodes that
   * were UP within the last `lastUpFor`, which go on serving while they drain.
   */
  readonly whenNoneUp: 'close' | 'lastUp' | 'all';
  /** Only for `lastUp`. */
  readonly lastUpFor: Millis;
}
