import { between, bindAddress, fileRules, ipAddress, notNegative, oneOf, positive } from './checks.ts';
import type { Field, FieldValue, Meaning } from './field.ts';

const second = 1000;
const minute = 60 * second;

const all = 'all';
const same: Meaning = { kind: 'same' };
const ignored = (why: string): Meaning => ({ kind: 'ignored', why });
const better = (how: string): Meaning => ({ kind: 'better', how });
const noGates: ReadonlyMap<string, boolean> = new Map();

const jsonOnly = 'all requests are JSON: they are few and small';
const oneRequest = 'there is one list and one watch per resource to send; Events have a bound of their own';
const oneStream = 'every line goes to standard error';
const unbuffered = 'lines are written at once, so none is lost when the process ends';

/** The release before each of those whose configuration is accepted. */
const hiddenMetrics = (value: FieldValue): string | undefined =>
  /^(1\.(2[5-9]|3[0-7]))?$/.test(String(value))
    ? undefined
    : 'must be a minor version from 1.25 to 1.37: the one before the Kubernetes that the file was written for';

const connection: readonly Field[] = [
  {
    path: 'clientConnection.kubeconfig',
    type: 'text',
    default: '',
    modes: all,
    meaning: same,
    change: 'restart',
    help: "kubeconfig file; empty, and no --master: the pod's service account",
  },
  {
    path: 'clientConnection.acceptContentTypes',
    type: 'text',
    default: '',
    modes: all,
    meaning: ignored(jsonOnly),
    change: 'none',
    help: 'Accept header of requests',
  },
  {
    path: 'clientConnection.contentType',
    type: 'text',
    default: 'application/vnd.kubernetes.protobuf',
    modes: all,
    meaning: ignored(jsonOnly),
    change: 'none',
    help: 'content type of requests',
  },
  {
    path: 'clientConnection.qps',
    type: 'number',
    default: 5,
    modes: all,
    meaning: ignored(oneRequest),
    change: 'none',
    help: 'requests per second to the API server',
  },
  {
    path: 'clientConnection.burst',
    type: 'integer',
    default: 10,
    modes: all,
    meaning: ignored(oneRequest),
    change: 'none',
    help: 'requests that may exceed qps for a moment',
    check: notNegative,
  },
];

const logging: readonly Field[] = [
  {
    path: 'logging.format',
    type: 'text',
    default: 'text',
    modes: all,
    meaning: {
      kind: 'different',
      how: 'objects of json have level, time (in milliseconds) and msg; those of Kubernetes ts, v, caller and msg',
    },
    change: 'restart',
    help: 'text (lines as klog writes them) or json (one object per line)',
    check: oneOf('text', 'json'),
  },
  {
    path: 'logging.flushFrequency',
    type: 'nanoseconds',
    default: 5 * second,
    modes: all,
    meaning: ignored(unbuffered),
    change: 'none',
    help: 'time between flushes of the log',
  },
  {
    path: 'logging.verbosity',
    type: 'integer',
    default: 0,
    modes: all,
    meaning: same,
    change: 'live',
    help: 'level of detail: from 4 on each Service, from 6 on each transaction',
    check: between(0, 2 ** 31 - 1),
  },
  {
    path: 'logging.vmodule',
    type: 'vmodule',
    default: [],
    modes: all,
    meaning: ignored('patterns name Go source files, of which there are none'),
    change: 'none',
    help: 'verbosity of single source files',
    check: fileRules,
  },
  ...(['text', 'json'] as const).flatMap((format): readonly Field[] => [
    {
      path: `logging.options.${format}.splitStream`,
      type: 'boolean',
      default: false,
      modes: all,
      meaning: ignored(oneStream),
      change: 'none',
      help: 'errors to standard error, all else to standard output',
    },
    {
      path: `logging.options.${format}.infoBufferSize`,
      type: 'quantity',
      default: '0',
      modes: all,
      meaning: ignored(unbuffered),
      change: 'none',
      help: 'buffer of a split stream',
    },
  ]),
];

const serving: readonly Field[] = [
  {
    path: 'hostnameOverride',
    type: 'text',
    default: '',
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'name of our Node; empty: the host name in lower case. --hostname-override wins over it',
  },
  {
    path: 'bindAddress',
    type: 'text',
    default: '0.0.0.0',
    modes: all,
    meaning: same,
    change: 'restart',
    help: "overrides the Node's primary address and with it the primary IP family; nothing is bound to it",
    hasAddresses: true,
    check: ipAddress,
  },
  {
    path: 'healthzBindAddress',
    type: 'text',
    default: '0.0.0.0:10256',
    modes: all,
    meaning: same,
    change: 'restart',
    help: '`/healthz` and `/livez`; a bare IP address gets port 10256; [::]:10256 if bindAddress is IPv6',
    hasAddresses: true,
    check: bindAddress,
  },
  {
    path: 'metricsBindAddress',
    type: 'text',
    default: '127.0.0.1:10249',
    modes: all,
    meaning: better(
      'an empty flag turns the server off; kube-proxy refuses it, though its help in 1.36 says otherwise',
    ),
    change: 'restart',
    help: '`/metrics`, `/configz`, ...; a bare IP address gets port 10249; [::1]:10249 if bindAddress is IPv6',
    hasAddresses: true,
    check: bindAddress,
  },
  {
    path: 'bindAddressHardFail',
    type: 'boolean',
    default: false,
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'a server that cannot listen ends the process; otherwise it tries again every 5 s',
  },
  {
    path: 'enableProfiling',
    type: 'boolean',
    default: false,
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'profiling endpoints on the metrics server',
  },
  {
    path: 'showHiddenMetricsForVersion',
    type: 'text',
    default: '',
    modes: all,
    meaning: ignored('no metric is hidden'),
    change: 'none',
    help: 'show metrics hidden since a version; the agent hides none',
    check: hiddenMetrics,
  },
  {
    path: 'featureGates',
    type: 'gates',
    default: noGates,
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'feature gates by name; an unknown one, or a locked one against its lock, is ignored with a warning',
  },
  {
    path: 'configSyncPeriod',
    type: 'duration',
    default: 15 * minute,
    modes: all,
    meaning: ignored('kube-proxy handles its cache again at this interval; the agent does not need that'),
    change: 'none',
    help: 'how often the cached objects are handled again',
    check: positive,
  },
];

/** Fields about the process itself: its servers, its connection to the API server, its log. */
export const processFields: readonly Field[] = [...serving, ...connection, ...logging];
