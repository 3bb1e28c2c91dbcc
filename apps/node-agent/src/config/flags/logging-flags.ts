import type { Flag } from './flag.ts';

const logging = (name: string, path: string, rest: Pick<Flag, 'type' | 'help'> & Partial<Flag>): Flag => ({
  name,
  group: 'Logging',
  target: { kind: 'field', path: `logging.${path}` },
  isKeptWithFile: true,
  ...rest,
});

/** Flags of klog and component-base. They win over the file. */
export const loggingFlags: readonly Flag[] = [
  logging('v', 'verbosity', {
    type: 'integer',
    value: 'LEVEL',
    help: 'level of detail: from 4 on each Service, from 6 on each transaction',
  }),
  logging('vmodule', 'vmodule', { type: 'vmodule', value: 'PATTERN=N,...', help: 'level of single source files' }),
  logging('logging-format', 'format', {
    type: 'text',
    value: 'text|json',
    help: 'lines as klog writes them, or one JSON object per line',
  }),
  logging('log-flush-frequency', 'flushFrequency', {
    type: 'nanoseconds',
    value: 'DURATION',
    help: 'time between flushes of the log',
  }),
  ...(['text', 'json'] as const).flatMap((format) => [
    logging(`log-${format}-split-stream`, `options.${format}.splitStream`, {
      type: 'boolean',
      bare: 'true',
      help: 'errors to standard error, all else to standard output',
    }),
    logging(`log-${format}-info-buffer-size`, `options.${format}.infoBufferSize`, {
      type: 'quantity',
      value: 'BYTES',
      help: 'buffer of a split stream',
    }),
  ]),
];

const cadvisor = (name: string, help: string): Flag => ({
  name,
  group: 'Inherited',
  type: 'text',
  target: { kind: 'nothing', meaning: { kind: 'ignored', why: 'kube-proxy does nothing with it either' } },
  isKeptWithFile: false,
  value: 'FILE,...',
  help,
});

/** Flags that kube-proxy has because libraries bring them. */
export const inheritedFlags: readonly Flag[] = [
  cadvisor('boot-id-file', 'where the boot id may be read'),
  cadvisor('machine-id-file', 'where the machine id may be read'),
];

/** Flags of klog that Kubernetes removed in 1.26; kube-proxy refuses them, and so does this agent, by name. */
export const removedFlags: readonly string[] = [
  'add-dir-header',
  'alsologtostderr',
  'log-backtrace-at',
  'log-dir',
  'log-file',
  'log-file-max-size',
  'logtostderr',
  'one-output',
  'skip-headers',
  'skip-log-headers',
  'stderrthreshold',
];
