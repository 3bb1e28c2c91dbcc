/** A metric of kube-proxy that is not served, and why. */
export interface RefusedMetric {
  /** A name, or a pattern with `*`. */
  readonly name: string;
  /** First release of Kubernetes that has it, if later than 1.36. */
  readonly since?: '1.37' | '1.38';
  readonly reason: string;
}

/** Metrics of kube-proxy 1.36 to 1.38 that this agent does not serve. */
export const refusedMetrics: readonly RefusedMetric[] = [
  {
    name: 'kubeproxy_nftables_localhost_nodeport_rejected_packets_total',
    reason: 'the kernel itself refuses packets to loopback NodePorts that nothing listens on; no rule counts them',
  },
  {
    name: 'rest_client_{rate_limiter_duration_seconds,request_retries_total,transport_*}',
    reason: "parts of Go's client: our reflectors have a back-off instead (switchyard_source_watch_restarts_total)",
  },
  {
    name: 'rest_client_{request,response}_size_bytes',
    reason: 'but for Events requests have no body; answers are watches, whose size says nothing',
  },
  {
    name: 'rest_client_exec_plugin_*',
    reason: 'an agent in a cluster has a token; a failing plug-in is logged',
  },
  {
    name: 'rest_client_dns_resolution_duration_seconds',
    since: '1.38',
    reason: 'the time is part of rest_client_request_duration_seconds',
  },
  {
    name: 'kubeproxy_sync_proxy_rules_winkernel_lb_{create,update,delete}_failures_total',
    since: '1.37',
    reason: 'only the kernelspace mode of Windows has them',
  },
  { name: 'go_*', reason: 'no Go runtime; see nodejs_*' },
  { name: 'process_virtual_memory_max_bytes, process_network_*', reason: 'of the whole node, not of this process' },
  {
    name: 'aggregator_*, apiserver_*, workqueue_*, registered_metrics_total, hidden_metrics_total, disabled_metrics_total',
    reason: "internals of Kubernetes' Go libraries",
  },
];
