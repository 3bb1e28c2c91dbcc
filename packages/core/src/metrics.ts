/**
 * Every metric of the agent, by name. Names, labels and buckets are kube-proxy's where the meaning is
 * equal; ours start with `switchyard_`. Units are in the name, as Prometheus wants it.
 */
export const counters = {
  kubeproxy_proxy_healthz_total: { help: 'Answers of /healthz by status code', labels: ['code'] },
  kubeproxy_proxy_livez_total: { help: 'Answers of /livez by status code', labels: ['code'] },
  kubeproxy_conntrack_reconciler_deleted_entries_total: {
    help: 'Stale UDP flows removed from the connection tracking',
    labels: ['ip_family'],
  },
  switchyard_apply_failures_total: { help: 'Applies that failed as a whole', labels: ['ip_family'] },
  switchyard_drift_total: {
    help: 'Foreign changes of what is ours in the kernel, by the worst kind of object they touched',
    labels: ['ip_family', 'kind'],
  },
  switchyard_apply_writes_total: { help: 'Kernel objects written or removed', labels: ['ip_family'] },
  switchyard_config_reloads_total: {
    help: 'Changed configuration files that were taken over (kind applied) or found broken (kind refused)',
    labels: ['kind'],
  },
  switchyard_health_check_listen_failures_total: {
    help: 'healthCheckNodePort servers that could not listen',
    labels: ['ip_family'],
  },
} as const;

/** Values that go up and down. */
export const gauges = {
  kubeproxy_sync_proxy_rules_last_timestamp_seconds: {
    help: 'Time of the last successful apply since the Unix epoch',
    labels: ['ip_family'],
  },
  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds: {
    help: 'Time at which an apply was last asked for since the Unix epoch',
    labels: ['ip_family'],
  },
  switchyard_unreconciled_seconds: {
    help: 'For how long nobody had reconciled the rules when this process found them, by the clock of the kernel',
    labels: ['ip_family'],
  },
  switchyard_failed_services: { help: 'Service ports whose last apply failed', labels: ['ip_family'] },
} as const;

/** Distributions. Buckets are upper bounds in seconds. */
export const histograms = {
  kubeproxy_sync_proxy_rules_duration_seconds: {
    help: 'Duration of an apply',
    labels: ['ip_family'],
    buckets: [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384],
  },
  kubeproxy_conntrack_reconciler_sync_duration_seconds: {
    help: 'Duration of one look for stale UDP flows',
    labels: ['ip_family'],
    buckets: [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384],
  },
  kubeproxy_network_programming_duration_seconds: {
    help: 'From the trigger time an EndpointSlice carries to the end of the apply; trigger times are whole seconds',
    labels: ['ip_family'],
    buckets: [0.25, 0.5, 1, 2, 3, 5, 8, 13, 20, 30, 45, 60, 90, 120, 180, 300],
  },
} as const;

export type CounterName = keyof typeof counters;
export type GaugeName = keyof typeof gauges;
export type HistogramName = keyof typeof histograms;

/** Values of a metric's labels. Bounded sets only; never a Service name. */
export type MetricLabels = Readonly<Partial<Record<'ip_family' | 'code' | 'kind', string>>>;

/** Where measurements go. Passed in; nothing registers globally. */
export interface Metrics {
  /** Adds `amount` (default 1) to a counter. */
  add(name: CounterName, labels: MetricLabels, amount?: number): void;
  /** Sets a gauge. */
  set(name: GaugeName, labels: MetricLabels, value: number): void;
  /** Records one value of a distribution, in the unit of the metric's name. */
  observe(name: HistogramName, labels: MetricLabels, value: number): void;
}

const ignore = (): void => undefined;

/** Discards everything. */
export const noopMetrics: Metrics = { add: ignore, set: ignore, observe: ignore };
