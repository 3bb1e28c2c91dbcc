import { between, bindAddress, fileRules, ipAddress, notNegative, oneOf, positive } from './checks.ts';
import { better, type Field, fieldsOf, type FieldRow, type FieldValue, ignored } from './field.ts';

const second = 1000;
const minute = 60 * second;

const noGates: ReadonlyMap<string, boolean> = new Map();

const jsonOnly = ignored('all requests are JSON: they are few and small');
const oneRequest = ignored('there is one list and one watch per resource to send; Events have a bound of their own');
const oneStream = ignored('every line goes to standard error');
const unbuffered = ignored('lines are written at once, so none is lost when the process ends');

/** Accepts the releases before those whose configuration is accepted. */
const hiddenMetrics = (value: FieldValue): string | undefined =>
  /^(1\.(2[5-9]|3[0-7]))?$/.test(String(value))
    ? undefined
    : 'must be a minor version from 1.25 to 1.37: the one before the Kubernetes that the file was written for';

const connection: readonly FieldRow[] = [
  [
    'clientConnection.kubeconfig',
    'text',
    '',
    "kubeconfig file; if empty and without --master: the pod's service account",
  ],
  ['clientConnection.acceptContentTypes', 'text', '', 'Accept header of requests', { meaning: jsonOnly }],
  [
    'clientConnection.contentType',
    'text',
    'application/vnd.kubernetes.protobuf',
    'content type of requests',
    { meaning: jsonOnly },
  ],
  ['clientConnection.qps', 'number', 5, 'requests per second to the API server', { meaning: oneRequest }],
  ['clientConnection.burst', 'integer', 10, 'maximum burst above qps', { meaning: oneRequest, check: notNegative }],
];

const logging: readonly FieldRow[] = [
  [
    'logging.format',
    'text',
    'text',
    'text (lines as klog writes them) or json (one object per line)',
    {
      meaning: {
        kind: 'different',
        how: 'objects of json have level, time (in milliseconds) and msg; those of Kubernetes ts, v, caller and msg',
      },
      check: oneOf('text', 'json'),
    },
  ],
  ['logging.flushFrequency', 'nanoseconds', 5 * second, 'interval between flushes of the log', { meaning: unbuffered }],
  [
    'logging.verbosity',
    'integer',
    0,
    'verbosity: from 4 on, each Service is logged; from 6 on, each transaction',
    { change: 'live', check: between(0, 2 ** 31 - 1) },
  ],
  [
    'logging.vmodule',
    'vmodule',
    [],
    'verbosity per source file',
    { meaning: ignored('patterns name Go source files, of which there are none'), check: fileRules },
  ],
  ...(['text', 'json'] as const).flatMap((format): readonly FieldRow[] => [
    [
      `logging.options.${format}.splitStream`,
      'boolean',
      false,
      'write errors to standard error and all other messages to standard output',
      { meaning: oneStream },
    ],
    [
      `logging.options.${format}.infoBufferSize`,
      'quantity',
      '0',
      'size of the buffer of a split stream',
      { meaning: unbuffered },
    ],
  ]),
];

const serving: readonly FieldRow[] = [
  [
    'hostnameOverride',
    'text',
    '',
    'name of the Node; empty: the host name in lower case. --hostname-override takes precedence',
  ],
  [
    'bindAddress',
    'text',
    '0.0.0.0',
    "overrides the Node's primary address and primary IP family; no server binds to it",
    { hasAddresses: true, check: ipAddress },
  ],
  [
    'healthzBindAddress',
    'text',
    '0.0.0.0:10256',
    'address of `/healthz` and `/livez`; a bare IP address gets port 10256; [::]:10256 if bindAddress is IPv6',
    { hasAddresses: true, check: bindAddress },
  ],
  [
    'metricsBindAddress',
    'text',
    '127.0.0.1:10249',
    'address of `/metrics`, `/configz` and others; a bare IP address gets port 10249; [::1]:10249 if bindAddress is IPv6',
    {
      meaning: better(
        'an empty flag turns the server off; kube-proxy refuses it, though its help in 1.36 says otherwise',
      ),
      hasAddresses: true,
      check: bindAddress,
    },
  ],
  [
    'bindAddressHardFail',
    'boolean',
    false,
    'end the process if a server cannot listen; otherwise it retries every 5 s',
  ],
  ['enableProfiling', 'boolean', false, 'serve profiling endpoints on the metrics server'],
  [
    'showHiddenMetricsForVersion',
    'text',
    '',
    'show metrics that are hidden since this version; the agent hides none',
    { meaning: ignored('no metric is hidden'), check: hiddenMetrics },
  ],
  [
    'featureGates',
    'gates',
    noGates,
    'feature gates by name; unknown gates, and other values for locked gates, are ignored with a warning',
  ],
  [
    'configSyncPeriod',
    'duration',
    15 * minute,
    'interval at which cached objects are processed again',
    {
      meaning: ignored('kube-proxy handles its cache again at this interval; the agent does not need that'),
      check: positive,
    },
  ],
];

/** Fields about the process itself: its servers, its connection to the API server, its log. */
export const processFields: readonly Field[] = fieldsOf({ modes: 'all', change: 'restart' }, [
  ...serving,
  ...connection,
  ...logging,
]);
