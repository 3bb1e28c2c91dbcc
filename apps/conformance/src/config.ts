import { type DataplaneName, dataplaneNames, kubeProxyDefault, referenceDataplane } from '@switchyard/scenarios';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { ConfigError } from '@switchyard/core';
import type { ClusterEnvironmentOptions } from './cluster/open-cluster-environment.ts';
import type { Choice } from './engine/select-cases.ts';
import { type BackendName, backendNames, type ForeignOptions } from './lab/proxy-program.ts';
import type { FamilyCell } from './model/case.ts';
import type { Target } from './model/report-file.ts';
import { type ReportTargets, standardOutput } from './report/commands.ts';
import { wantsColours } from './report/texts.ts';

export type Config =
  | { readonly kind: 'help' }
  | RunConfig
  | ListConfig
  /** These parse their own arguments. */
  | { readonly kind: FileCommand; readonly args: readonly string[] };

/** Commands that only read and write files. */
export const fileCommands = ['diff', 'report', 'publish', 'verify', 'pages'] as const;
export type FileCommand = (typeof fileCommands)[number];

export interface ChoiceConfig extends Choice {
  /** Scenario files of the user. Their cases run alone, or beside those that globs and tags choose. */
  readonly scenarioFiles: readonly string[];
  /** Undefined: both families, or those that the cluster has. */
  readonly cell: FamilyCell | undefined;
}

export type ProxyConfig =
  | { readonly kind: 'own'; readonly backends: readonly BackendName[] }
  | ({ readonly kind: 'foreign' } & ForeignOptions)
  | ClusterConfig;

/** The proxy of a cluster. Without `dataplane` the proxy reports its mode. */
export interface ClusterConfig {
  readonly kind: 'cluster';
  readonly name: string | undefined;
  readonly dataplane: DataplaneName | undefined;
}

export interface ClusterFlags extends Pick<
  ClusterEnvironmentOptions,
  'image' | 'podCommand' | 'nodes' | 'mayHaveOtherLoadBalancers' | 'isDisruptive' | 'hasController' | 'isKept'
> {
  /** Undefined: KUBECONFIG, or ~/.kube/config. */
  readonly kubeconfig: string | undefined;
  /** Environment of a pod that has a service account and no kubeconfig. Undefined: use the kubeconfig. */
  readonly podEnvironment: Readonly<Record<string, string | undefined>> | undefined;
  readonly context: string | undefined;
  /** Removes what earlier runs left, and runs nothing. */
  readonly isCleanUp: boolean;
}

export interface RunConfig extends ChoiceConfig {
  readonly kind: 'run';
  readonly target: Target;
  readonly proxy: ProxyConfig;
  readonly cluster: ClusterFlags;
  /** Prefix of lab names, before two letters. At most six of a-z and 0-9. */
  readonly labName: string;
  readonly seed: number;
  readonly rounds: number;
  /** Labs side by side. */
  readonly jobs: number;
  /** Starts no further case after the first failure. */
  readonly isFailFast: boolean;
  readonly isVerbose: boolean;
  readonly output: ReportTargets;
  /** Where Sonobuoy waits for results, if this is its plug-in. */
  readonly sonobuoyFolder: string | undefined;
}

export interface ListConfig extends ChoiceConfig {
  readonly kind: 'list';
  readonly dataplane: DataplaneName;
  readonly format: 'text' | 'json';
}

const options = {
  target: { type: 'string', default: 'lab' },
  backend: { type: 'string' },
  'proxy-cmd': { type: 'string' },
  'proxy-name': { type: 'string' },
  mode: { type: 'string' },
  'ip-family': { type: 'string' },
  scenario: { type: 'string', multiple: true },
  case: { type: 'string', multiple: true },
  tag: { type: 'string', multiple: true },
  seed: { type: 'string', default: '1' },
  repeat: { type: 'string', default: '1' },
  jobs: { type: 'string', default: '1' },
  'lab-name': { type: 'string', default: 'conf' },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  image: { type: 'string' },
  'pod-command': { type: 'string' },
  nodes: { type: 'string' },
  'allow-other-load-balancers': { type: 'boolean', default: false },
  disruptive: { type: 'boolean', default: false },
  'load-balancer': { type: 'boolean', default: false },
  keep: { type: 'boolean', default: false },
  cleanup: { type: 'boolean', default: false },
  json: { type: 'string' },
  junit: { type: 'string' },
  html: { type: 'string' },
  sonobuoy: { type: 'boolean', default: false },
  'fail-fast': { type: 'boolean', default: false },
  verbose: { type: 'boolean', short: 'v', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const listOptions = {
  mode: options.mode,
  'ip-family': options['ip-family'],
  scenario: options.scenario,
  case: options.case,
  tag: options.tag,
  json: { type: 'boolean', default: false },
  help: options.help,
} as const;

/** What `--help` prints. */
export const usage: string = `usage: switchyard-conformance [run|list|diff|report|publish|verify|pages] [FLAGS]

  run (default)      sends packets through a Service proxy and says what it does wrong
  list               the cases, with what each checks
  diff A.json B.json the differences between two runs, for example of two proxies
  report A.json...   makes --html, --junit or --text from runs done before
  publish A.json     makes a report of a run by profiles, for others to read; verify checks one, pages shows a folder of them
  (list --json: as data; list --mode iptables|ebpf: whose cases)

which proxy (in a lab of network namespaces, which needs root):
  --backend NAME[,NAME...]|all   Switchyard's own: ${backendNames.join(', ')}; default nftables
  --proxy-cmd CMD                any other, run by a shell on node1; {kubeconfig} {config} {flags} {node} {mode} are
                                 filled in; {config} is a KubeProxyConfiguration file, {flags} the same as flags
  --proxy-name NAME              what it is called in reports; default: its program
  --mode nftables|iptables|ebpf  whose answers are expected where kube-proxy's modes differ; default iptables, or what
                                 the cluster's proxy says of itself
  --target cluster               the proxy of a cluster instead: --kubeconfig FILE, --context NAME; --image IMAGE of the
                                 pods (and its --pod-command CMD), --nodes TESTED,OUTSIDE, --keep, --cleanup,
                                 --allow-other-load-balancers, --disruptive (restarts the proxy's pod),
                                 --load-balancer (addresses from the cluster's own controller)

which cases:
  --scenario FILE    your own scenario, a YAML file: its cases scenario/NAME/ipv4 and ipv6, and no others unless --case
                     or --tag choose some; may be repeated
  --case GLOB        ids, as list prints them; * stops at a slash, ** does not; may be repeated
  --tag TAG          for example smoke, udp, '!slow'; may be repeated
  --ip-family F      families of the lab's cluster: ipv4, ipv6, dual (default, has all cases)

how:
  --seed N           order of the cases, default 1      --repeat N    rounds, default 1: verdicts that differ are named
  --jobs N           labs side by side, default 1       --fail-fast   stops at the first failure
  --lab-name NAME    prefix of lab names, default conf  -v            a line per case

results: --json FILE (-: standard output, after the summary)  --junit FILE  --html FILE; ^C writes what is done by then
         --sonobuoy leaves JUnit where Sonobuoy collects it
exit status: 0 all passed or skipped with a reason, 1 a case failed, 2 wrong usage, 3 the lab or cluster failed`;

/** Whether this stream is a terminal and `NO_COLOR` does not forbid colours. */
export function hasColours(stream: { readonly isTTY?: boolean }): boolean {
  return wantsColours(stream, process.env['NO_COLOR']);
}

/** Where Sonobuoy waits for results, if `--sonobuoy` is given; a command line that is wrong has it, too. */
export function sonobuoyFolderOf(args: readonly string[]): string | undefined {
  if (!args.includes('--sonobuoy')) return undefined;
  return process.env['SONOBUOY_RESULTS_DIR'] ?? '/tmp/sonobuoy/results';
}

/** Reads the command line. Throws `ConfigError` that says what is wrong. */
export function readConfig(args: readonly string[]): Config {
  const [first = 'run', ...rest] = args;
  switch (first.startsWith('-') ? 'run' : first) {
    case 'help':
      return { kind: 'help' };
    case 'run':
      return runConfig(parse(first === 'run' ? rest : args, options), args);
    case 'list':
      return listConfig(parse(rest, listOptions));
    default: {
      const command = fileCommands.find((one) => one === first);
      if (command !== undefined) return { kind: command, args: rest };
      throw wrong(`there is no command ${first}; there are run, list, ${fileCommands.join(', ')}`);
    }
  }
}

function parse<T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], known: T) {
  try {
    return parseArgs({ args: [...args], options: known, allowPositionals: false }).values;
  } catch (cause) {
    throw wrong((cause as Error).message.split('. To specify')[0] ?? '', cause);
  }
}

type Values = ReturnType<typeof parse<typeof options>>;
type ListValues = ReturnType<typeof parse<typeof listOptions>>;

function listConfig(values: ListValues): Config {
  if (values.help) return { kind: 'help' };
  const dataplane = oneOf('mode', values.mode ?? referenceDataplane.name, dataplaneNames);
  return { kind: 'list', dataplane, format: values.json ? 'json' : 'text', ...choice(values) };
}

function runConfig(values: Values, args: readonly string[]): Config {
  if (values.help) return { kind: 'help' };
  const target = oneOf('target', values.target, ['lab', 'cluster']);
  const labName = values['lab-name'];
  if (!/^[a-z0-9]{1,6}$/.test(labName)) throw wrong(`--lab-name is 1 to 6 of a-z and 0-9, not ${labName}`);
  return {
    kind: 'run',
    target,
    proxy: proxyConfig(values, target),
    cluster: clusterFlags(values, target),
    labName,
    seed: whole('seed', values.seed, 0),
    rounds: whole('repeat', values.repeat, 1),
    jobs: whole('jobs', values.jobs, 1),
    isFailFast: values['fail-fast'],
    isVerbose: values.verbose,
    output: outputOf(values),
    sonobuoyFolder: sonobuoyFolderOf(args),
    ...choice(values),
  };
}

function outputOf({ json, junit, html }: Values): ReportTargets {
  if (junit === standardOutput || html === standardOutput) throw wrong('only --json may be - (standard output)');
  return { json, junit, html };
}

function proxyConfig(values: Values, target: Target): ProxyConfig {
  const { backend, mode, 'proxy-cmd': command, 'proxy-name': name } = values;
  const given = mode === undefined ? undefined : oneOf('mode', mode, dataplaneNames);
  if (target === 'cluster') {
    if (backend !== undefined || command !== undefined) {
      throw wrong('--target cluster tests the proxy that the cluster has; without --backend and --proxy-cmd');
    }
    return { kind: 'cluster', name, dataplane: given };
  }
  if (command !== undefined) {
    if (backend !== undefined) throw wrong('--backend and --proxy-cmd both say which proxy; give one');
    return { kind: 'foreign', command, name, dataplane: given ?? kubeProxyDefault.name };
  }
  if (mode !== undefined || name !== undefined)
    throw wrong('--mode and --proxy-name belong to --proxy-cmd or --target cluster');
  const names = (backend ?? referenceDataplane.name).split(',');
  if (names.includes('all')) return { kind: 'own', backends: backendNames };
  return { kind: 'own', backends: [...new Set(names.map((one) => oneOf('backend', one, backendNames)))] };
}

function choice(values: Pick<Values, 'scenario' | 'case' | 'tag' | 'ip-family'>): ChoiceConfig {
  const family = values['ip-family'];
  const cell = family === undefined ? undefined : oneOf('ip-family', family, ['dual', 'ipv4', 'ipv6']);
  return { scenarioFiles: values.scenario ?? [], globs: values.case ?? [], tags: values.tag ?? [], cell };
}

const clusterOnly = [
  'kubeconfig',
  'context',
  'image',
  'pod-command',
  'nodes',
  'disruptive',
  'load-balancer',
  'keep',
  'cleanup',
  'allow-other-load-balancers',
] as const;

function clusterFlags(values: Values, target: Target): ClusterFlags {
  const { kubeconfig, context, image, nodes, disruptive, keep, cleanup } = values;
  const mayHaveOthers = values['allow-other-load-balancers'];
  const podCommand = values['pod-command'];
  if (target !== 'cluster' && clusterOnly.some((name) => (values[name] ?? false) !== false)) {
    const flags = clusterOnly.map((name) => `--${name}`);
    throw wrong(`${flags.slice(0, -1).join(', ')} and ${flags.at(-1)} belong to --target cluster`);
  }
  const file = kubeconfig ?? process.env['KUBECONFIG'];
  const isInPod = context === undefined && process.env['KUBERNETES_SERVICE_HOST'] !== undefined;
  const [first, second, ...more] = nodes?.split(',') ?? [];
  if (nodes !== undefined && (first === undefined || second === undefined || more.length > 0)) {
    throw wrong(`--nodes is two names, the node under test and one that stands for the outside, not ${nodes}`);
  }
  return {
    kubeconfig: file,
    podEnvironment: file === undefined && isInPod ? process.env : undefined,
    context,
    image,
    podCommand: podCommand?.split(' ').filter((word) => word !== ''),
    nodes: first === undefined || second === undefined ? undefined : [first, second],
    mayHaveOtherLoadBalancers: mayHaveOthers,
    isDisruptive: disruptive,
    hasController: values['load-balancer'],
    isKept: keep,
    isCleanUp: cleanup,
  };
}

function oneOf<T extends string>(flag: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw wrong(`--${flag} is one of ${allowed.join(', ')}, not ${value}`);
  return found;
}

function whole(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (text !== '' && Number.isSafeInteger(value) && value >= least) return value;
  throw wrong(`--${flag} is a whole number from ${least} on, not ${text}`);
}

function wrong(what: string, cause?: unknown): ConfigError {
  return new ConfigError('conformance.usage', `${what}\nsee switchyard-conformance --help`, { cause });
}
