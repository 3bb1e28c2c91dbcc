/** Metrics that kube-proxy does not have. `switchyard_` is about the proxy, `nodejs_` about the runtime. */
export const ownMetrics = {
  counters: {
    switchyard_apply_failures_total: { help: 'Applies that failed as a whole', labels: ['ip_family'] },
    switchyard_apply_writes_total: { help: 'Kernel objects written or removed', labels: ['ip_family'] },
    switchyard_config_reloads_total: {
      help: 'Changes of the configuration file, by result',
      labels: ['result'],
      values: { result: ['applied', 'rejected', 'restart'] },
    },
    switchyard_drift_total: {
      help: 'Foreign changes of kernel objects of the agent, by the worst kind of object they touched',
      labels: ['ip_family', 'kind'],
      values: { kind: ['table', 'chain', 'rule', 'set', 'program', 'map', 'element', 'unknown'] },
    },
    switchyard_health_check_listen_failures_total: {
      help: 'healthCheckNodePort servers that could not listen',
      labels: ['ip_family'],
    },
    switchyard_service_metrics_failures_total: {
      help: 'Failures to read the counters of Services from the kernel; the last ones are served again',
      labels: ['ip_family'],
    },
    switchyard_source_relists_total: {
      help: 'Full lists taken from the API server, the first one included',
      labels: ['resource'],
      values: { resource: ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'] },
    },
    switchyard_source_watch_restarts_total: {
      help: 'Watches and lists that ended, by reason',
      labels: ['reason', 'resource'],
      values: {
        reason: ['ended', 'cut', 'silent', 'expired', 'refused', 'unreachable'],
        resource: ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'],
      },
    },
  },
  gauges: {
    switchyard_adoption_duration_seconds: {
      help: 'Duration of the first successful apply of this process, which adopts the objects in the kernel',
      labels: ['ip_family'],
      isAbsentFirst: true,
    },
    switchyard_adoption_writes: {
      help: 'Kernel objects written by the first successful apply of this process; 0: a restart found all of them in place',
      labels: ['ip_family'],
      isAbsentFirst: true,
    },
    switchyard_config_last_reload_timestamp_seconds: {
      help: 'Time of the last change of the configuration file that was applied since the Unix epoch',
      labels: [],
      isAbsentFirst: true,
    },
    switchyard_failed_services: { help: 'Service ports whose last apply failed', labels: ['ip_family'] },
    switchyard_service_ports: {
      help: 'Service ports in the last apply, failed ones included',
      labels: ['ip_family'],
    },
    switchyard_source_last_relist_timestamp_seconds: {
      help: 'Time of the last full list since the Unix epoch',
      labels: ['resource'],
      isAbsentFirst: true,
    },
    switchyard_unreconciled_seconds: {
      help: 'Age of the installed rules when the agent started, by the clock of the kernel',
      labels: ['ip_family'],
      isAbsentFirst: true,
    },
    switchyard_start_to_forwarding_seconds: {
      help: 'From the start of the process to the first apply of every family',
      labels: [],
      isAbsentFirst: true,
    },
  },
  histograms: {},
  collected: {
    switchyard_build_info: { type: 'gauge', help: 'Always 1', labels: ['backend', 'node_version', 'version'] },
    switchyard_ebpf_map_capacity: {
      type: 'gauge',
      help: 'Number of entries that fit into a BPF map until it is replaced by one twice as large',
      labels: ['ip_family', 'map'],
      values: { map: ['services', 'endpoints', 'slots', 'frontends', 'source_ranges'] },
      set: 'maps',
    },
    switchyard_ebpf_map_entries: {
      type: 'gauge',
      help: 'Entries of a BPF map that are in use, or were until a second ago',
      labels: ['ip_family', 'map'],
      values: { map: ['services', 'endpoints', 'slots', 'frontends', 'source_ranges'] },
      set: 'maps',
    },
    switchyard_health: {
      type: 'gauge',
      help: 'Present result of /healthz and /livez, 1 is 200',
      labels: ['endpoint'],
    },
    switchyard_oldest_pending_change_seconds: {
      help: 'Waiting time of the oldest change that is not yet applied, 0 if none waits',
      type: 'gauge',
      labels: ['ip_family'],
    },
    switchyard_service_connections_total: {
      type: 'counter',
      help: 'First packets of connections to a Service port, refused ones included, counted by the kernel',
      labels: ['ip_family', 'namespace', 'port', 'protocol', 'service'],
    },
    switchyard_service_drops_total: {
      type: 'counter',
      help: 'First packets of connections to a Service port that were refused, counted by the kernel',
      labels: ['ip_family', 'namespace', 'port', 'protocol', 'reason', 'service'],
    },
    switchyard_service_metrics_omitted: {
      type: 'gauge',
      help: 'Service ports without series of their own because of the limit',
      labels: ['ip_family'],
    },
    switchyard_source_lag_seconds: {
      type: 'gauge',
      help: 'Time since the last data of a watch, or since the start of the process; servers send a bookmark about once a minute',
      labels: ['resource'],
    },
    nodejs_eventloop_lag_max_seconds: {
      type: 'gauge',
      help: 'Longest delay of a timer since the last scrape',
      labels: [],
    },
    nodejs_eventloop_lag_mean_seconds: {
      type: 'gauge',
      help: 'Mean delay of a timer since the last scrape',
      labels: [],
    },
    nodejs_eventloop_lag_p99_seconds: {
      type: 'gauge',
      help: 'Delay of a timer that 1 % exceed since the last scrape',
      labels: [],
    },
    nodejs_eventloop_utilization: {
      type: 'gauge',
      help: 'Busy share of the event loop since the last scrape, 0 to 1',
      labels: [],
    },
    nodejs_external_memory_bytes: { type: 'gauge', help: 'Memory of buffers outside of the heap', labels: [] },
    nodejs_heap_size_total_bytes: { type: 'gauge', help: 'Reserved heap', labels: [] },
    nodejs_heap_size_used_bytes: { type: 'gauge', help: 'Heap in use, garbage included', labels: [] },
    nodejs_version_info: { type: 'gauge', help: 'Always 1', labels: ['major', 'minor', 'patch', 'version'] },
  },
} as const;
