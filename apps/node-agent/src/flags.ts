import { parseArgs } from 'node:util';
import { ConfigError } from '@switchyard/core';

/** One command line flag. */
export interface Flag {
  readonly name: string;
  /** `switch` takes no value, or `=true` and `=false`; `text` needs one. */
  readonly kind: 'switch' | 'text';
  /** What the value is, for the help. */
  readonly value?: string;
  readonly help: string;
}

/** Every flag, in the order of the help. Names and meanings are kube-proxy's, but for the last group. */
export const flags: readonly Flag[] = [
  {
    name: 'kubeconfig',
    kind: 'text',
    value: 'FILE',
    help: 'how to reach the API server (default: the service account of the pod)',
  },
  {
    name: 'hostname-override',
    kind: 'text',
    value: 'NAME',
    help: 'name of our Node (default: the host name in lower case)',
  },
  {
    name: 'proxy-mode',
    kind: 'text',
    value: 'MODE',
    help: 'dataplane; only nftables, and it must be said: unset means iptables',
  },
  {
    name: 'cluster-cidr',
    kind: 'text',
    value: 'CIDR[,CIDR]',
    help: 'where pods are, one range per IP family; without it pods are not told from others',
  },
  { name: 'masquerade-all', kind: 'switch', help: 'masquerade all traffic to cluster IPs' },
  {
    name: 'nodeport-addresses',
    kind: 'text',
    value: 'CIDR[,CIDR...]',
    help: "where NodePorts answer, or 'primary': the Node's own address of each family (default)",
  },
  {
    name: 'healthz-bind-address',
    kind: 'text',
    value: 'IP[:PORT]',
    help: "where /healthz and /livez answer (default 0.0.0.0:10256; '' for nowhere)",
  },
  {
    name: 'iptables-min-sync-period',
    kind: 'text',
    value: 'DURATION',
    help: "least time between two applies, in every mode (default: the dataplane's own)",
  },
  {
    name: 'iptables-sync-period',
    kind: 'text',
    value: 'DURATION',
    help: 'longest wait before a retry; /healthz fails when a change waits twice as long (default 30s)',
  },
  { name: 'cleanup', kind: 'switch', help: 'remove everything this dataplane left in the kernel, and exit' },
  { name: 'init-only', kind: 'switch', help: 'do what needs more rights than CAP_NET_ADMIN, and exit' },
  { name: 'conntrack-max-per-core', kind: 'text', value: 'N', help: 'flows tracked per core; 0 leaves the limit' },
  { name: 'conntrack-min', kind: 'text', value: 'N', help: 'flows tracked at least' },
  {
    name: 'conntrack-tcp-timeout-established',
    kind: 'text',
    value: 'DURATION',
    help: 'how long idle TCP flows are tracked; 0 leaves it',
  },
  { name: 'oom-score-adj', kind: 'text', value: 'N', help: 'how likely the kernel ends this process first' },
  {
    name: 'v',
    kind: 'text',
    value: 'LEVEL',
    help: 'log level: 4 and more for details of each service, 6 and more for transactions (default 2)',
  },
  { name: 'version', kind: 'switch', help: 'print the version, and exit' },
  { name: 'help', kind: 'switch', help: 'print this, and exit' },
  {
    name: 'switchyard-manifests',
    kind: 'text',
    value: 'DIR',
    help: 'follow YAML and JSON files in a folder instead of an API server',
  },
  {
    name: 'switchyard-nft-transport',
    kind: 'text',
    value: 'netlink|cli',
    help: 'how nftables elements reach the kernel: netlink (default), or the nft program',
  },
  {
    name: 'switchyard-terminating-fallback',
    kind: 'text',
    value: 'on|off',
    help: 'off: never send to terminating endpoints, as Kubernetes up to 1.25 (default on)',
  },
  {
    name: 'switchyard-kube-proxy-rules',
    kind: 'text',
    value: 'remove|keep',
    help: 'what a stopped kube-proxy left, once ours is in place (default remove)',
  },
  { name: 'switchyard-cleanup-kube-proxy', kind: 'switch', help: 'with --cleanup: remove what kube-proxy left too' },
  { name: 'switchyard-dump', kind: 'switch', help: 'print what is in the kernel, and exit' },
];

/** Flag values as given, the last one winning as in Go. Switches are `true` or `false`. */
export type FlagValues = ReadonlyMap<string, string>;

const shortNames: Readonly<Record<string, string>> = { '-v': '--v', '-h': '--help' };

/** Reads `--flag=value`, `--flag value` and switches. Throws `ConfigError` for everything else. */
export function parseFlags(args: readonly string[]): FlagValues {
  const values = new Map<string, string>();
  const { tokens } = parseArgs({
    args: args.map(normalise),
    options: Object.fromEntries(flags.map(({ name }) => [name, { type: 'string', multiple: true }] as const)),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') throw refuse(`unexpected argument ${JSON.stringify(token.value)}`);
    if (token.kind === 'option-terminator') continue;
    const flag = flags.find(({ name }) => name === token.name);
    if (flag === undefined || !token.rawName.startsWith('--')) throw refuse(`unknown flag ${token.rawName}`);
    if (token.value === undefined) throw refuse(`${token.rawName} needs a value: ${flag.value}`);
    if (flag.kind === 'switch') values.set(flag.name, String(parseSwitch(flag, token.value)));
    else values.set(flag.name, token.value);
  }
  return values;
}

/** The text of --help. */
export function helpText(): string {
  const rows = flags.map(
    ({ name, value, help }) => [`--${name}${value === undefined ? '' : ` ${value}`}`, help] as const,
  );
  const width = Math.max(...rows.map(([left]) => left.length));
  const lines = rows.map(([left, help]) => `  ${left.padEnd(width)}  ${help}`);
  return `usage: switchyard-agent [FLAGS]\n\nKeeps the Service dataplane of this node equal to what the cluster asks.\n\n${lines.join('\n')}\n`;
}

/** Gives a bare switch its value, and `-v` its long name, so that the parser sees one form only. */
function normalise(arg: string): string {
  const [head = '', ...rest] = arg.split('=');
  const long = shortNames[head] ?? head;
  const text = rest.length > 0 ? `${long}=${rest.join('=')}` : long;
  const isBareSwitch = flags.some(({ name, kind }) => kind === 'switch' && text === `--${name}`);
  return isBareSwitch ? `${text}=true` : text;
}

function parseSwitch(flag: Flag, value: string): boolean {
  if (['true', 't', '1'].includes(value.toLowerCase())) return true;
  if (['false', 'f', '0'].includes(value.toLowerCase())) return false;
  throw refuse(`--${flag.name} is true or false, not ${JSON.stringify(value)}`);
}

function refuse(what: string): ConfigError {
  return new ConfigError('flags.invalid', `${what}; see --help`);
}
