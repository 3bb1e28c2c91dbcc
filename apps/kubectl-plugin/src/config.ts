import { parseArgs } from 'node:util';
import { ConfigError, type Millis, parseGoDuration } from '@switchyard/core';
import type { GatePlace } from './access/gate.ts';
import type { CheckOptions } from './rollout/rollout-report.ts';

export const usage = `Why packets of Services are lost, on every node. Works with Switchyard's agents, and beside kube-proxy with its observer.

Usage:
  kubectl switchyard status                        state of each node's proxy
  kubectl switchyard table SERVICE                 forwarding of a Service on each node, and differences
  kubectl switchyard losses [--follow]             lost packets of Services, with their causes
  kubectl switchyard why POD SERVICE[:PORT]        why this pod gets no answer from the Service
  kubectl switchyard ui                            the same as a page for the browser
  kubectl switchyard drain NODE                    empty a node; its pods of Services lose no request (needs the drain gate)
  kubectl switchyard rollout check deployment/NAME requests that its next rollout will lose, and changes to lose none; works behind any proxy
  kubectl switchyard rollout watch deployment/NAME report of a rollout: pods, nodes' applies and losses on one clock, and the prediction

Options:
  -n, --namespace NAME        namespace of POD and SERVICE; of losses: only its Services
  -o, --output json           JSON instead of text
      --seconds N             time to watch: losses 10, why 2
      --follow                watch until ^C (losses, why)
      --probe                 send real probes from the pod's network namespace (why)
      --probes N              how many, to meet several endpoints: 1 to 20, default 10
      --udp                   UDP instead of TCP (why)
      --from-outside ADDRESS  the client is this address outside of the cluster instead of a pod (why SERVICE)
      --port N                port of the page on 127.0.0.1; default: any (ui)
      --node NAME             ask this node: for --from-outside the one that receives the packet, by NodePort without a load balancer
      --timeout N             longest wait in seconds: for a replacement, and at the gate, default 120 (drain); for the end of the rollout, default 600 (rollout watch)
      --delete-emptydir-data  as for kubectl drain (drain)
      --gate URL              use this drain gate; default: a pod of it in --agent-namespace (drain)
      --rate N                requests a second of each kind of clients, default 20 (rollout check); to --url, default 50 (rollout watch)
      --restart               begin the rollout, as kubectl rollout restart does (rollout watch)
      --url URL               send requests there, each over a new connection; http or https (rollout watch)
      --html FILE             also write the report as a page with a timeline (rollout watch)
      --load-balancer PROFILE health checks of the load balancer, as in docs/operate/health-check-profiles.md; default: detected (rollout)
      --proxy NAME[:VERSION]  kube-proxy, cilium, switchyard or switchyard-iptables, as kube-proxy:1.25; default: detected (rollout)
      --proxy-delay TIME      longest time until every node has applied a change, as 3s; default: as the metrics of kube-proxy say, else that of a small cluster (rollout)
      --drain-time TIME       how long the application accepts connections after SIGTERM, as 5s; default: not known (rollout)
      --agent NODE=URL        use this agent; repeatable; without kubectl
      --agent-namespace NAME  namespace of the agents' pods; default: kube-system
      --selector LABELS       labels of the agents' pods; default: app.kubernetes.io/name=switchyard but for the drain gate, else k8s-app=kube-proxy
      --agent-port N          port of the agents' metrics server; default: 10249, of observers 10239
      --kubeconfig FILE, --context NAME, --cluster NAME, --user NAME, --as NAME, --request-timeout T: as for kubectl

Exit status: 0 nothing is lost, it works; 2 losses, refusals or differences were found or are predicted, or a rollout did not end; 1 an error, told on standard error
`;

const kubectlFlags = ['kubeconfig', 'context', 'cluster', 'user', 'as', 'request-timeout'] as const;

const options = {
  namespace: { type: 'string', short: 'n' },
  output: { type: 'string', short: 'o' },
  seconds: { type: 'string' },
  follow: { type: 'boolean' },
  probe: { type: 'boolean' },
  probes: { type: 'string' },
  udp: { type: 'boolean' },
  'from-outside': { type: 'string' },
  node: { type: 'string' },
  port: { type: 'string' },
  timeout: { type: 'string' },
  'delete-emptydir-data': { type: 'boolean' },
  gate: { type: 'string' },
  rate: { type: 'string' },
  restart: { type: 'boolean' },
  url: { type: 'string' },
  html: { type: 'string' },
  'load-balancer': { type: 'string' },
  proxy: { type: 'string' },
  'proxy-delay': { type: 'string' },
  'drain-time': { type: 'string' },
  agent: { type: 'string', multiple: true },
  'agent-namespace': { type: 'string' },
  selector: { type: 'string' },
  'agent-port': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  cluster: { type: 'string' },
  user: { type: 'string' },
  as: { type: 'string' },
  'request-timeout': { type: 'string' },
} as const;

export const commandNames = ['status', 'table', 'losses', 'why', 'ui', 'drain', 'rollout'] as const;
export type CommandName = (typeof commandNames)[number];

/** Options of `rollout watch`. */
export interface WatchOptions {
  /** Whether to begin the rollout. */
  readonly restart: boolean;
  /** Target of requests; undefined: none are sent. */
  readonly url: URL | undefined;
  /** File of the page; undefined: none. */
  readonly html: string | undefined;
}

/** A command line. */
export interface Config {
  readonly command: CommandName;
  readonly operands: readonly string[];
  readonly namespace: string | undefined;
  readonly isJson: boolean;
  readonly seconds: number | undefined;
  readonly follow: boolean;
  /** 0: none is sent. */
  readonly probes: number;
  readonly protocol: 'TCP' | 'UDP';
  readonly fromOutside: string | undefined;
  readonly node: string | undefined;
  /** Of the page; 0: any. */
  readonly port: number;
  /** Of a drain or a watched rollout, in seconds. */
  readonly timeout: number;
  readonly deleteEmptyDirData: boolean;
  readonly gate: GatePlace;
  readonly rollout: CheckOptions;
  readonly watch: WatchOptions;
  readonly agents: {
    readonly given: readonly string[];
    readonly namespace: string;
    readonly selector: string | undefined;
    readonly port: number | undefined;
  };
  /** The program KUBECTL, by default `kubectl`, with the user's cluster flags. */
  readonly kubectl: { readonly file: string; readonly flags: readonly string[] };
}

/** Undefined: help is wanted. Throws `ConfigError`. */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Config | undefined {
  const { values, positionals } = parse(args);
  const [command, ...operands] = positionals;
  if (values.help === true || command === undefined || command === 'help') return undefined;
  if (!isCommand(command)) throw wrong(`unknown command ${JSON.stringify(command)}: one of ${commandNames.join(', ')}`);
  const output = values.output ?? 'text';
  if (output !== 'text' && output !== 'json')
    throw wrong(`--output ${JSON.stringify(output)} is neither json nor text`);
  checkOperands(command, operands, values['from-outside'] !== undefined);
  const isWatch = command === 'rollout' && operands[0] === 'watch';
  return {
    command,
    operands,
    namespace: values.namespace,
    isJson: output === 'json',
    seconds: values.seconds === undefined ? undefined : wholeNumber('--seconds', values.seconds, 3600),
    follow: values.follow ?? false,
    probes: probesOf(values),
    protocol: values.udp === true ? 'UDP' : 'TCP',
    fromOutside: values['from-outside'],
    node: values.node,
    port: values.port === undefined ? 0 : wholeNumber('--port', values.port, 65_535),
    timeout: timeoutOf(values.timeout, isWatch),
    deleteEmptyDirData: values['delete-emptydir-data'] ?? false,
    gate: {
      given: values.gate,
      namespace: values['agent-namespace'] ?? 'kube-system',
    },
    rollout: {
      rate: rateOf(values.rate, isWatch),
      proxy: values.proxy,
      proxyDelay: durationOf('--proxy-delay', values['proxy-delay']),
      loadBalancer: values['load-balancer'],
      drain: durationOf('--drain-time', values['drain-time']),
    },
    watch: { restart: values.restart ?? false, url: urlOf(values.url), html: values.html },
    agents: {
      given: values.agent ?? [],
      namespace: values['agent-namespace'] ?? 'kube-system',
      selector: values.selector,
      port: values['agent-port'] === undefined ? undefined : wholeNumber('--agent-port', values['agent-port'], 65_535),
    },
    kubectl: {
      file: env['KUBECTL'] ?? 'kubectl',
      flags: kubectlFlags.flatMap((name) => (values[name] === undefined ? [] : [`--${name}=${values[name]}`])),
    },
  };
}

/** An API server ends each watch after 30 to 60 minutes. */
const longestWatch = 1800;

function timeoutOf(text: string | undefined, isWatch: boolean): number {
  if (text === undefined) return isWatch ? 600 : 120;
  return wholeNumber('--timeout', text, isWatch ? longestWatch : 3600);
}

/** A watch sends the requests itself. */
function rateOf(text: string | undefined, isWatch: boolean): number {
  if (text === undefined) return isWatch ? 50 : 20;
  return wholeNumber('--rate', text, isWatch ? 1000 : 1_000_000);
}

function urlOf(text: string | undefined): URL | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw wrong(`--url ${JSON.stringify(text)} is no URL such as http://10.96.0.20/`);
}

const defaultProbes = 10;

function probesOf({ probe = false, probes }: { readonly probe?: boolean; readonly probes?: string }): number {
  if (probes !== undefined) return wholeNumber('--probes', probes, 20);
  return probe ? defaultProbes : 0;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error));
  }
}

function isCommand(text: string): text is CommandName {
  return commandNames.some((name) => name === text);
}

const operandNames: Readonly<Record<CommandName, readonly string[]>> = {
  status: [],
  table: ['SERVICE'],
  losses: [],
  why: ['POD', 'SERVICE[:PORT]'],
  ui: [],
  drain: ['NODE'],
  rollout: ['check|watch', 'deployment/NAME'],
};

function checkOperands(command: CommandName, operands: readonly string[], isFromOutside: boolean): void {
  const wanted = command === 'why' && isFromOutside ? ['SERVICE[:PORT]'] : operandNames[command];
  if (operands.length === wanted.length) return;
  throw wrong(`usage: kubectl switchyard ${[command, ...wanted].join(' ')}; got ${operands.length} arguments`);
}

function wholeNumber(flag: string, text: string, max: number): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < 1 || number > max)
    throw wrong(`${flag} ${JSON.stringify(text)} is no number from 1 to ${max}`);
  return number;
}

function durationOf(flag: string, text: string | undefined): Millis | undefined {
  if (text === undefined) return undefined;
  try {
    return parseGoDuration(text);
  } catch (cause) {
    throw new ConfigError('config.arguments', `${flag} ${JSON.stringify(text)} is no duration such as 10s or 500ms`, {
      cause,
    });
  }
}

function wrong(message: string): ConfigError {
  return new ConfigError('config.arguments', `${message} (kubectl switchyard --help)`);
}
