/** A cluster whose Services we are to serve. */
export interface DiscoveredCluster {
  /** As kind knows it; unique. */
  readonly name: string;
  /** The text of a kubeconfig whose current context reaches the cluster's API server from here. */
  readonly kubeconfig: string;
}

/** Which clusters there are, for as long as somebody wants to know. */
export interface ClusterDiscovery {
  /**
   * Calls `onChange` with all clusters, sorted by name, once at the start (perhaps with none) and whenever a name or a
   * kubeconfig changes. What cannot be told for a while (no engine) is waited out; it does not make clusters disappear.
   * Rejects only with `signal.reason`, or with a ConfigError that waiting would not help.
   */
  watchClusters(onChange: (clusters: readonly DiscoveredCluster[]) => void, signal: AbortSignal): Promise<void>;
}
