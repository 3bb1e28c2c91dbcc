import type { RowSpec } from './panels.ts';

/** All panels. Every metric stands in docs/generated/metrics.md. */
export const rows: readonly RowSpec[] = [
  {
    title: 'Health',
    panels: [
      {
        title: 'Agents',
        description: 'Agents that answer, and those of them whose /healthz or /livez is not 200.',
        kind: 'stat',
        unit: 'none',
        queries: [
          { expr: 'count(switchyard_build_info{$sel})', legend: 'answering' },
          { expr: 'count(switchyard_health{endpoint="healthz",$sel} == 0) or vector(0)', legend: 'not ready' },
          { expr: 'count(switchyard_health{endpoint="livez",$sel} == 0) or vector(0)', legend: 'not live' },
        ],
      },
      {
        title: 'Oldest change not yet applied',
        description: 'Milliseconds are usual. At a minute /livez turns red: the kernel refuses, or the agent hangs.',
        kind: 'timeseries',
        unit: 's',
        queries: [
          {
            expr: 'max by (instance, ip_family) (switchyard_oldest_pending_change_seconds{$sel})',
            legend: '{{instance}} {{ip_family}}',
          },
        ],
      },
      {
        title: 'Service ports, and those that fail',
        description: 'Failed ones are not in the kernel as they should be; all others are. The log names them.',
        kind: 'timeseries',
        unit: 'none',
        queries: [
          { expr: 'max by (ip_family) (switchyard_service_ports{$sel})', legend: 'in the kernel {{ip_family}}' },
          { expr: 'sum by (ip_family) (switchyard_failed_services{$sel})', legend: 'failed {{ip_family}}' },
        ],
      },
    ],
  },
  {
    title: 'How fast changes arrive',
    panels: [
      {
        title: 'Network programming latency',
        description:
          'From the moment a pod changed to the end of the apply. Trigger times are whole seconds, so below one second it is noise.',
        kind: 'timeseries',
        unit: 's',
        queries: [
          {
            expr: 'histogram_quantile(0.99, sum by (le) (rate(kubeproxy_network_programming_duration_seconds_bucket{$sel}[$__rate_interval])))',
            legend: 'p99',
          },
          {
            expr: 'histogram_quantile(0.5, sum by (le) (rate(kubeproxy_network_programming_duration_seconds_bucket{$sel}[$__rate_interval])))',
            legend: 'p50',
          },
        ],
      },
      {
        title: 'Network programming latency, spread',
        description: 'The same, every change counted.',
        kind: 'heatmap',
        unit: 's',
        queries: [
          {
            expr: 'sum by (le) (increase(kubeproxy_network_programming_duration_seconds_bucket{$sel}[$__rate_interval]))',
            legend: '{{le}}',
          },
        ],
      },
      {
        title: 'Changes heard of and waiting',
        description: 'Per second; and how many wait for a family to apply them.',
        kind: 'timeseries',
        unit: 'none',
        queries: [
          {
            expr: 'sum(rate(kubeproxy_sync_proxy_rules_endpoint_changes_total{$sel}[$__rate_interval]))',
            legend: 'EndpointSlices/s',
          },
          {
            expr: 'sum(rate(kubeproxy_sync_proxy_rules_service_changes_total{$sel}[$__rate_interval]))',
            legend: 'Services/s',
          },
          { expr: 'sum(kubeproxy_sync_proxy_rules_endpoint_changes_pending{$sel})', legend: 'EndpointSlices waiting' },
          { expr: 'sum(kubeproxy_sync_proxy_rules_service_changes_pending{$sel})', legend: 'Services waiting' },
        ],
      },
    ],
  },
  {
    title: 'Applies',
    panels: [
      {
        title: 'Duration, p99',
        description:
          'Partial: what has changed. Full: the kernel is read back, hourly, after a failure and after drift.',
        kind: 'timeseries',
        unit: 's',
        queries: [
          {
            expr: 'histogram_quantile(0.99, sum by (le, ip_family) (rate(kubeproxy_sync_partial_proxy_rules_duration_seconds_bucket{$sel}[$__rate_interval])))',
            legend: 'partial {{ip_family}}',
          },
          {
            expr: 'histogram_quantile(0.99, sum by (le, ip_family) (rate(kubeproxy_sync_full_proxy_rules_duration_seconds_bucket{$sel}[$__rate_interval])))',
            legend: 'full {{ip_family}}',
          },
        ],
      },
      {
        title: 'Applies and writes',
        description: 'Writes are kernel objects; a full apply that finds everything in place writes none.',
        kind: 'timeseries',
        unit: 'ops',
        queries: [
          {
            expr: 'sum by (ip_family) (rate(kubeproxy_sync_proxy_rules_duration_seconds_count{$sel}[$__rate_interval]))',
            legend: 'applies {{ip_family}}',
          },
          {
            expr: 'sum by (ip_family) (rate(switchyard_apply_writes_total{$sel}[$__rate_interval]))',
            legend: 'writes {{ip_family}}',
          },
        ],
      },
      {
        title: 'Failures',
        description: 'Anything but 0 wants a look into the log of the agent.',
        kind: 'timeseries',
        unit: 'ops',
        queries: [
          {
            expr: 'sum by (ip_family) (rate(switchyard_apply_failures_total{$sel}[$__rate_interval]))',
            legend: 'apply {{ip_family}}',
          },
          {
            expr: 'sum by (ip_family) (rate(switchyard_health_check_listen_failures_total{$sel}[$__rate_interval]))',
            legend: 'healthCheckNodePort {{ip_family}}',
          },
          {
            expr: 'sum by (ip_family) (rate(switchyard_service_metrics_failures_total{$sel}[$__rate_interval]))',
            legend: 'counters {{ip_family}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Drift and restarts',
    panels: [
      {
        title: 'Drift',
        description: 'Somebody else changed our rules. They were repaired; the log names the process.',
        kind: 'timeseries',
        unit: 'none',
        queries: [
          {
            expr: 'sum by (instance, kind) (increase(switchyard_drift_total{$sel}[$__rate_interval])) > 0 or sum(increase(switchyard_drift_total{$sel}[$__rate_interval]))',
            legend: '{{instance}} {{kind}}',
          },
        ],
      },
      {
        title: 'Last start: time without anybody',
        description: 'For how long nobody had reconciled when the agent started, and how long it took to forward.',
        kind: 'timeseries',
        unit: 's',
        queries: [
          {
            expr: 'max by (instance, ip_family) (switchyard_unreconciled_seconds{$sel})',
            legend: 'nobody {{instance}} {{ip_family}}',
          },
          { expr: 'max by (instance) (switchyard_start_to_forwarding_seconds{$sel})', legend: 'start {{instance}}' },
        ],
      },
      {
        title: 'Last start: writes of the first apply',
        description: '0 when everything was found in place.',
        kind: 'timeseries',
        unit: 'none',
        queries: [
          {
            expr: 'max by (instance, ip_family) (switchyard_adoption_writes{$sel})',
            legend: '{{instance}} {{ip_family}}',
          },
        ],
      },
    ],
  },
  {
    title: 'API server',
    panels: [
      {
        title: 'Time since the last word',
        description:
          'Servers send a bookmark about once a minute. More than two minutes: this node does not hear of changes.',
        kind: 'timeseries',
        unit: 's',
        queries: [{ expr: 'max by (resource) (switchyard_source_lag_seconds{$sel})', legend: '{{resource}}' }],
      },
      {
        title: 'Watches that ended, and full lists',
        description:
          'ended, cut and silent are everyday; expired costs a full list; refused and unreachable are trouble.',
        kind: 'timeseries',
        unit: 'none',
        queries: [
          {
            expr: 'sum by (reason) (increase(switchyard_source_watch_restarts_total{$sel}[$__rate_interval]))',
            legend: '{{reason}}',
          },
          { expr: 'sum(increase(switchyard_source_relists_total{$sel}[$__rate_interval]))', legend: 'full lists' },
        ],
      },
      {
        title: 'Requests by status',
        description: 'A watch counts once, when it is opened. <error>: no answer.',
        kind: 'timeseries',
        unit: 'reqps',
        queries: [
          {
            expr: 'sum by (code, method) (rate(rest_client_requests_total{$sel}[$__rate_interval]))',
            legend: '{{method}} {{code}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Services',
    panels: [
      {
        title: 'Busiest Services',
        description: 'New connections per second, counted by the kernel on the nodes where they begin.',
        kind: 'timeseries',
        unit: 'cps',
        queries: [
          {
            expr: 'topk(10, sum by (namespace, service) (rate(switchyard_service_connections_total{$sel}[$__rate_interval])))',
            legend: '{{namespace}}/{{service}}',
          },
        ],
      },
      {
        title: 'Refused connections by reason',
        description: 'no_endpoints is rejected; no_local_endpoint and source_range are dropped.',
        kind: 'timeseries',
        unit: 'cps',
        queries: [
          {
            expr: 'sum by (reason) (rate(switchyard_service_drops_total{$sel}[$__rate_interval]))',
            legend: '{{reason}}',
          },
        ],
      },
      {
        title: 'Services that refuse most',
        description: 'Their pods are gone, or not on the node the traffic comes to.',
        kind: 'timeseries',
        unit: 'cps',
        queries: [
          {
            expr: 'topk(10, sum by (namespace, service, reason) (rate(switchyard_service_drops_total{$sel}[$__rate_interval])))',
            legend: '{{namespace}}/{{service}} {{reason}}',
          },
        ],
      },
      {
        title: 'Local policy without a local endpoint',
        description:
          'Service ports for which a node drops traffic, because the policy is Local; usual for external ones.',
        kind: 'timeseries',
        unit: 'none',
        queries: [
          {
            expr: 'sum by (instance, traffic_policy) (kubeproxy_sync_proxy_rules_no_local_endpoints_total{$sel})',
            legend: '{{instance}} {{traffic_policy}}',
          },
        ],
      },
      {
        title: 'Service ports not shown above',
        description: 'Because of the limit serviceMetrics; raise it, or live with the busiest.',
        kind: 'timeseries',
        unit: 'none',
        queries: [
          {
            expr: 'max by (instance, ip_family) (switchyard_service_metrics_omitted{$sel})',
            legend: '{{instance}} {{ip_family}}',
          },
        ],
      },
      {
        title: 'Stale UDP flows removed',
        description: 'Flows that still led to an endpoint that is gone.',
        kind: 'timeseries',
        unit: 'ops',
        queries: [
          {
            expr: 'sum by (ip_family) (rate(kubeproxy_conntrack_reconciler_deleted_entries_total{$sel}[$__rate_interval]))',
            legend: '{{ip_family}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Process',
    panels: [
      {
        title: 'Memory',
        description: 'Resident, and the part of it that is JavaScript heap.',
        kind: 'timeseries',
        unit: 'bytes',
        queries: [
          { expr: 'process_resident_memory_bytes{$sel}', legend: 'resident {{instance}}' },
          { expr: 'nodejs_heap_size_total_bytes{$sel}', legend: 'heap {{instance}}' },
        ],
      },
      {
        title: 'CPU',
        description: '1 is one core.',
        kind: 'timeseries',
        unit: 'none',
        queries: [{ expr: 'rate(process_cpu_seconds_total{$sel}[$__rate_interval])', legend: '{{instance}}' }],
      },
      {
        title: 'Longest standstill',
        description:
          'For so long nothing of the agent ran, since the scrape before. Packets do not wait for it; changes do.',
        kind: 'timeseries',
        unit: 's',
        queries: [{ expr: 'nodejs_eventloop_lag_max_seconds{$sel}', legend: '{{instance}}' }],
      },
    ],
  },
];
