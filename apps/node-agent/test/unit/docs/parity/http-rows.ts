import type { ParityRow } from './row.ts';

/** The agent's two HTTP servers with fixed paths. */
export type ServerName = 'health' | 'metrics';

/** A path of one server. */
export type ServedPath = `${ServerName}:${string}`;

/** A comparison of HTTP answers. A row that is not `missing` is served at each of its paths; a missing one at none. */
export interface HttpRow extends ParityRow {
  /** Empty for rows about Service ports and about the servers as a whole. */
  readonly paths: readonly ServedPath[];
}

const health: readonly HttpRow[] = [
  {
    what: '`:10256/healthz`, `/livez`: fields, codes, headers, node eligibility',
    paths: ['health:/healthz', 'health:/livez'],
    standing: 'same',
    note: 'any method',
  },
  {
    what: '`:10256/healthz` before the first apply',
    paths: [],
    standing: 'better',
    note: '503; kube-proxy answers 200 before it has written a rule',
  },
  {
    what: 'an IP family whose applies have all failed',
    paths: [],
    standing: 'better',
    note: '503 after the timeout; kube-proxy leaves such a family out',
  },
  {
    what: 'times in bodies',
    paths: [],
    standing: 'same',
    note: 'RFC 3339; UTC with milliseconds, where kube-proxy writes local time with nanoseconds',
  },
  {
    what: 'clients that send without reading, or send half a request',
    paths: [],
    standing: 'better',
    note: '[limits](../design/http.md#limits-of-a-client): one request of a connection at a time, five seconds to send it; kube-proxy has no limit',
  },
];

const healthCheckNodePorts: readonly HttpRow[] = [
  {
    what: 'healthCheckNodePort: JSON, weight header, any path and method, sockets and counts per family, selected loopback addresses',
    paths: [],
    standing: 'same',
    note: '',
  },
  {
    what: 'healthCheckNodePort of a deleted Service',
    paths: [],
    standing: 'better',
    note: 'connected clients get one 503; kube-proxy cuts the connection, and a request in flight may get an empty 200',
  },
  {
    what: 'healthCheckNodePort without the health server',
    paths: [],
    standing: 'better',
    note: "answers as usual; kube-proxy's code takes a part of the answer from the health server",
  },
  {
    what: 'healthCheckNodePort that is in use',
    paths: [],
    standing: 'better',
    note: 'one Event, a new attempt every 5 s, other addresses answer; kube-proxy tries at a later sync, with an Event at each',
  },
];

const metricsServer: readonly HttpRow[] = [
  {
    what: '`:10249/healthz` with `verbose` and `exclude`, `/healthz/ping`',
    paths: ['metrics:/healthz', 'metrics:/healthz/ping'],
    standing: 'same',
    note: '',
  },
  { what: '`/proxyMode`', paths: ['metrics:/proxyMode'], standing: 'same', note: '' },
  {
    what: '`/configz`',
    paths: ['metrics:/configz'],
    standing: 'same',
    note: "also has the agent's own configuration, under `switchyard.dev`",
  },
  {
    what: '`/metrics` as text, with the header `Process-Start-Time-Unix`',
    paths: ['metrics:/metrics'],
    standing: 'better',
    note: '[all metrics](metrics.md); also as OpenMetrics',
  },
  {
    what: '`/metrics` compressed with gzip',
    paths: [],
    standing: 'missing',
    note: 'the answer usually crosses loopback, and costs memory and CPU to compress',
  },
  {
    what: '`/metrics` as protobuf',
    paths: [],
    standing: 'missing',
    note: 'text is the answer; Prometheus accepts both',
  },
  {
    what: 'native histograms in the protobuf form (`NativeHistograms`: off in 1.36, on from 1.37)',
    paths: [],
    standing: 'missing',
    note: 'the buckets of the text form are complete',
  },
  {
    what: '`/metrics/slis`, with DELETE and the same header',
    paths: ['metrics:/metrics/slis'],
    standing: 'same',
    note: '',
  },
  {
    what: '`/statusz`: text, and the objects of `config.k8s.io` v1beta1 and v1alpha1 as JSON and YAML; its gate',
    paths: ['metrics:/statusz'],
    standing: 'same',
    note: 'a constant delimiter; "Node.js version" instead of "Go version" in the text, and this version as `goVersion` in the objects. KEP-4827 planned v1 for 1.37, but the gate is still beta there',
  },
  {
    what: '`/flagz`: the same forms; its gate',
    paths: ['metrics:/flagz'],
    standing: 'better',
    note: 'a flag that was not given has the value of the file. kube-proxy shows its default, and says so in a note from 1.38 on (kubernetes/kubernetes#140233)',
  },
  {
    what: '`/statusz` and `/flagz` as CBOR, with the alpha gate `CBORServingAndStorage`',
    paths: [],
    standing: 'missing',
    note: '406, as for every type that is not served',
  },
  {
    what: 'wrong method',
    paths: [],
    standing: 'better',
    note: '405 with `Allow`; most paths of kube-proxy take any method, and `/debug/flags/v` answers 406',
  },
  {
    what: '`/debug/pprof/profile` for `go tool pprof`',
    paths: ['metrics:/debug/pprof/profile'],
    standing: 'same',
    note: "also in V8's format",
  },
  {
    what: '`/debug/pprof/heap` for `go tool pprof`',
    paths: ['metrics:/debug/pprof/heap'],
    standing: 'different',
    note: 'memory that was allocated during the request (`seconds`, default 10) and is still in use. kube-proxy shows all memory in use. No heap snapshots: they would contain credentials',
  },
  {
    what: '`/debug/pprof/`, `/debug/pprof/cmdline`, `/debug/flags/`, `/debug/flags/v`',
    paths: [
      'metrics:/debug/pprof',
      'metrics:/debug/pprof/',
      'metrics:/debug/pprof/cmdline',
      'metrics:/debug/flags',
      'metrics:/debug/flags/',
      'metrics:/debug/flags/v',
    ],
    standing: 'same',
    note: '',
  },
  {
    what: '`/debug/pprof/` `allocs`, `block`, `goroutine`, `mutex`, `symbol`, `threadcreate`, `trace`',
    paths: ['allocs', 'block', 'goroutine', 'mutex', 'symbol', 'threadcreate', 'trace'].map(
      (name) => `metrics:/debug/pprof/${name}` as const,
    ),
    standing: 'missing',
    note: '404: these describe the Go runtime',
  },
  {
    what: 'a port in use, `bindAddressHardFail: false`',
    paths: [],
    standing: 'better',
    note: 'a new attempt every 5 s, as in kube-proxy; also an Event',
  },
  {
    what: 'a port in use, `bindAddressHardFail: true`',
    paths: [],
    standing: 'same',
    note: 'Event on the Node, the process ends with code 1, rules stay',
  },
];

/** Ports, paths and answers. */
export const httpRows: readonly HttpRow[] = [...health, ...healthCheckNodePorts, ...metricsServer];

/** Paths that only the agent has. */
export const ownPaths: readonly ServedPath[] = [
  'metrics:/debug/dump',
  'metrics:/debug/explain',
  'metrics:/debug/changes',
  'metrics:/debug/forwarding',
  'metrics:/debug/losses',
  'metrics:/debug/status',
  'metrics:/debug/why',
];
