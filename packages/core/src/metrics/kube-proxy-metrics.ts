/** kube-proxy's metrics that the agent serves: same names, types, labels and buckets as in 1.36 to 1.38, other help texts. */
export const kubeProxyMetrics = {
  counters: {
    kubeproxy_conntrack_reconciler_deleted_entries_total: {
      help: 'Stale UDP flows removed from connection tracking',
      labels: ['ip_family'],
    },
    kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total: {
      help: 'Attempts to listen for a NodePort on the loopback address that failed',
      labels: ['ip_family'],
      set: 'loopbackProxy',
      difference: 'In the ebpf mode too; attempts are repeated.',
    },
    kubeproxy_proxy_healthz_total: {
      help: 'Answers of /healthz by status code',
      labels: ['code'],
      values: { code: ['200', '503'] },
    },
    kubeproxy_proxy_livez_total: {
      help: 'Answers of /livez by status code',
      labels: ['code'],
      values: { code: ['200', '503'] },
    },
    kubeproxy_sync_proxy_rules_endpoint_changes_total: {
      help: 'EndpointSlices received, changed or listed',
      labels: [],
      difference: 'Once for the node; kube-proxy counts once per IP family.',
    },
    kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total: {
      help: 'Partial applies that the kernel refused, in part or as a whole',
      labels: ['ip_family'],
      set: 'rules',
      difference: 'All Services except the refused one are written.',
    },
    kubeproxy_sync_proxy_rules_iptables_restore_failures_total: {
      help: 'Full applies that the kernel refused, in part or as a whole',
      labels: ['ip_family'],
      set: 'rules',
      difference: 'All Services except the refused one are written.',
    },
    kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total: {
      help: 'Failures to remove stale objects',
      labels: ['ip_family'],
      set: 'transactions',
      difference: 'Always 0: stale objects are removed in the same transaction; its failure is a sync failure.',
    },
    kubeproxy_sync_proxy_rules_nftables_sync_failures_total: {
      help: 'Applies of the nftables backend that failed as a whole',
      labels: ['ip_family'],
      set: 'transactions',
    },
    kubeproxy_sync_proxy_rules_service_changes_total: {
      help: 'Services received, changed or listed',
      labels: [],
      difference: 'Once for the node; kube-proxy counts once per IP family.',
    },
    rest_client_requests_total: {
      help: 'Requests to the API server by status code, <error> if there was no answer',
      labels: ['code', 'host', 'method'],
    },
  },
  gauges: {
    kubeproxy_nftables_localhost_nodeport_listeners: {
      help: 'NodePorts for which the agent listens on the loopback address',
      labels: ['ip_family'],
      set: 'loopbackProxy',
      difference: 'In the ebpf mode too.',
    },
    kubeproxy_sync_proxy_rules_endpoint_changes_pending: {
      help: 'EndpointSlices received after the newest one that every family has applied',
      labels: [],
    },
    kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds: {
      help: 'Time of the last request for an apply since the Unix epoch',
      labels: ['ip_family'],
      isAbsentFirst: true,
    },
    kubeproxy_sync_proxy_rules_last_timestamp_seconds: {
      help: 'Time of the last successful apply since the Unix epoch',
      labels: ['ip_family'],
      isAbsentFirst: true,
    },
    kubeproxy_sync_proxy_rules_no_local_endpoints_total: {
      help: 'Service ports that drop because their policy is Local and no endpoint is on this node',
      labels: ['ip_family', 'traffic_policy'],
      values: { traffic_policy: ['internal', 'external'] },
    },
    kubeproxy_sync_proxy_rules_service_changes_pending: {
      help: 'Services received after the newest one that every family has applied',
      labels: [],
    },
  },
  histograms: {
    kubeproxy_conntrack_reconciler_sync_duration_seconds: {
      help: 'Duration of one search for stale UDP flows',
      labels: ['ip_family'],
      buckets: 'exponential',
      difference: 'Runs beside the applies, so it is no part of their duration.',
    },
    kubeproxy_network_programming_duration_seconds: {
      help: 'From the trigger time an EndpointSlice carries to the end of the apply; trigger times are whole seconds',
      labels: ['ip_family'],
      buckets: 'networkProgramming',
    },
    kubeproxy_sync_full_proxy_rules_duration_seconds: {
      help: 'Duration of an apply that reads the kernel back',
      labels: ['ip_family'],
      buckets: 'exponential',
    },
    kubeproxy_sync_partial_proxy_rules_duration_seconds: {
      help: 'Duration of an apply of what has changed',
      labels: ['ip_family'],
      buckets: 'exponential',
    },
    kubeproxy_sync_proxy_rules_duration_seconds: {
      help: 'Duration of an apply',
      labels: ['ip_family'],
      buckets: 'exponential',
    },
    rest_client_request_duration_seconds: {
      help: 'From a request to the end of its answer, watches excepted',
      labels: ['host', 'verb'],
      buckets: 'restClient',
    },
  },
  collected: {
    kubeproxy_iptables_ct_state_invalid_dropped_packets_total: {
      type: 'counter',
      help: 'Packets dropped because connection tracking classifies them as invalid; absent where the kernel has no netfilter accounting',
      labels: [],
      set: 'rules',
    },
    kubeproxy_iptables_localhost_nodeports_accepted_packets_total: {
      type: 'counter',
      help: 'Packets to NodePorts on 127.0.0.0/8; absent where the kernel has no netfilter accounting',
      labels: [],
      set: 'rules',
    },
    kubeproxy_sync_proxy_rules_iptables_last: {
      type: 'gauge',
      help: 'Rules written by the last apply',
      labels: ['ip_family', 'table'],
      set: 'rules',
    },
    kubeproxy_sync_proxy_rules_iptables_total: {
      type: 'gauge',
      help: 'Rules of the agent in the kernel',
      labels: ['ip_family', 'table'],
      set: 'rules',
    },
    kubernetes_build_info: {
      type: 'gauge',
      help: 'Always 1; labels name the kube-proxy version that this agent replaces',
      labels: [
        'build_date',
        'compiler',
        'git_commit',
        'git_tree_state',
        'git_version',
        'go_version',
        'major',
        'minor',
        'platform',
      ],
      difference: 'git_version ends with +switchyard and our version; go_version is that of Node, compiler is v8.',
    },
    kubernetes_feature_enabled: {
      type: 'gauge',
      help: 'Whether a feature gate is on',
      labels: ['name', 'stage'],
      difference: 'Gates of the proxy only; kube-proxy lists every gate of Kubernetes.',
    },
    kubernetes_healthcheck: {
      type: 'gauge',
      help: 'Result of a health check, 1 is good',
      labels: ['name', 'type'],
      path: '/metrics/slis',
    },
    kubernetes_healthchecks_total: {
      type: 'counter',
      help: 'Results of health checks',
      labels: ['name', 'status', 'type'],
      path: '/metrics/slis',
    },
    process_cpu_seconds_total: { type: 'counter', help: 'User and system CPU time', labels: [] },
    process_max_fds: { type: 'gauge', help: 'Most file descriptors the process may open', labels: [] },
    process_open_fds: { type: 'gauge', help: 'Open file descriptors', labels: [] },
    process_resident_memory_bytes: { type: 'gauge', help: 'Resident memory', labels: [] },
    process_start_time_seconds: { type: 'gauge', help: 'Start of the process since the Unix epoch', labels: [] },
    process_virtual_memory_bytes: { type: 'gauge', help: 'Virtual memory', labels: [] },
  },
} as const;
