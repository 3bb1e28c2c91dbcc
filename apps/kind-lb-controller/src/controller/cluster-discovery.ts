/** A cluster to serve. */
export interface DiscoveredCluster {
  /** As kind knows it; unique. */
  readonly name: string;
  /** The text of a kubeconfig whose current context reaches the cluster's API server from here. */
  readonly kubeconfig: string;
}

/** Finds clusters and follows them until aborted. */
export interface ClusterDiscovery {
  /**
   * Calls `onChange` with all clusters, sorted by name, once at the start (perhaps with none) and whenever a name or a
   * kubeconfig changes. While the engine does not answer, clusters stay as they were.
   * Rejects only with `signal.reason`, or with a ConfigError that waiting would not help.
   */
  watchClusters(onChange: (clusters: readonly DiscoveredCluster[]) => void, signal: AbortSignal): Promise<void>;
}
