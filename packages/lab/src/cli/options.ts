import { parseArgs } from 'node:util';
import { ConfigError, ipFamilies, type IpFamily, messageOf, tryParseIp } from '@switchyard/core';
import { type AgentMode, agentModes, defaultAgentMode } from '../agent-program.ts';

/** Default name of a lab. */
const defaultLab = 'demo';

/** Labs by name; `dead` are those whose owner process has ended. */
export type LabChoice = 'all' | 'dead' | readonly string[];

/** One command line of `./dev lab`, checked. */
export type LabCommand =
  | { readonly kind: 'help' }
  | { readonly kind: 'up'; readonly options: UpOptions }
  | { readonly kind: 'down'; readonly names: LabChoice }
  | { readonly kind: 'list' }
  | { readonly kind: 'status'; readonly name: string }
  | { readonly kind: 'exec'; readonly name: string; readonly host: string; readonly command: readonly string[] }
  | { readonly kind: 'probe'; readonly name: string; readonly host: string; readonly words: readonly string[] };

/** Options of `lab up`. Plain data: the daemon receives it as JSON. */
export interface UpOptions {
  readonly name: string;
  readonly nodes: number;
  readonly ipFamilies: readonly IpFamily[];
  /** Starts the node agent on every node. */
  readonly agents: boolean;
  readonly proxyMode: AgentMode;
}

const familiesByFlag: Readonly<Record<string, readonly IpFamily[]>> = {
  ipv4: ['IPv4'],
  ipv6: ['IPv6'],
  dual: ipFamilies,
};

/** Text of `./dev lab help`. */
export const usage: string = `usage: ./dev lab COMMAND

  up       build a cluster in network namespaces and leave it running in the background
             --name NAME        default ${defaultLab}; several labs run side by side
             --nodes N          default 3
             --ip-family F      ipv4, ipv6 or dual (default)
             --agents           start the node agent on every node
             --proxy-mode M     their mode: nftables (default), iptables or ebpf
  down     remove a lab: processes, namespaces, cgroups, mounts (--name NAME, --all,
             or --dead: those whose process has ended)
  list     the labs of this machine
  status   hosts, addresses and programs of a lab (--name NAME)
  exec     run a command in a host or pod: exec [--name NAME] HOST -- COMMAND
             hosts: client, lb, api, node1, node2, ...; KUBECONFIG is set for kubectl
  probe    one connection attempt, or several: probe [--name NAME] [--count N] HOST PROTOCOL ADDRESS PORT
             protocols: http, tcp, udp, connect; prints the pod that answered and the source address it saw
  help     this text`;

/** Parses the arguments after `./dev lab`. Throws `ConfigError` with a one-line message. */
export function parseLabCommand(args: readonly string[]): LabCommand {
  const [command = 'help', ...rest] = args;
  if (command === 'help' || asksForHelp(args)) return { kind: 'help' };
  switch (command) {
    case 'up':
      return { kind: 'up', options: parseUp(rest) };
    case 'down': {
      const flags = { name: { type: 'string' }, all: { type: 'boolean' }, dead: { type: 'boolean' } } as const;
      const { name, all = false, dead = false } = parse(rest, flags).values;
      if (Number(all) + Number(dead) + Number(name !== undefined) > 1) {
        throw invalid('use only one of --name, --all and --dead');
      }
      return { kind: 'down', names: all ? 'all' : dead ? 'dead' : [name ?? defaultLab] };
    }
    case 'list':
      parse(rest, {});
      return { kind: 'list' };
    case 'status':
      return { kind: 'status', name: parse(rest, { name: { type: 'string' } }).values.name ?? defaultLab };
    case 'exec':
      return parseExec(rest);
    case 'probe':
      return parseProbe(rest);
    default:
      throw invalid(`unknown command ${JSON.stringify(command)}; see ./dev lab help`);
  }
}

/** Whether `--help` follows any command. Arguments after `--` belong to the executed command. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h');
}

function parseUp(args: readonly string[]): UpOptions {
  const { values } = parse(args, {
    name: { type: 'string', default: defaultLab },
    nodes: { type: 'string', default: '3' },
    'ip-family': { type: 'string', default: 'dual' },
    agents: { type: 'boolean', default: false },
    'proxy-mode': { type: 'string', default: defaultAgentMode },
  });
  const families = familiesByFlag[values['ip-family']];
  if (families === undefined) throw invalid(`--ip-family is ipv4, ipv6 or dual, not ${values['ip-family']}`);
  if (!/^[0-9]+$/.test(values.nodes)) throw invalid(`--nodes is a number, not ${values.nodes}`);
  const proxyMode = values['proxy-mode'];
  if (!isMode(proxyMode)) {
    throw invalid(`--proxy-mode is one of ${agentModes.join(', ')}, not ${proxyMode}`);
  }
  return { name: values.name, nodes: Number(values.nodes), ipFamilies: families, agents: values.agents, proxyMode };
}

function isMode(text: string): text is AgentMode {
  return (agentModes as readonly string[]).includes(text);
}

/** All arguments after `--` belong to the command, including those that look like flags. */
function parseExec(args: readonly string[]): LabCommand {
  const end = args.indexOf('--');
  const own = end < 0 ? args : args.slice(0, end);
  const { values, positionals } = parse(own, { name: { type: 'string', default: defaultLab } }, true);
  const [host, ...others] = positionals;
  const command = end < 0 ? others : args.slice(end + 1);
  if (host === undefined) throw invalid('the host is missing: exec HOST -- COMMAND');
  if (end >= 0 && others.length > 0) throw invalid(`unexpected ${others.join(' ')}: use exec HOST -- COMMAND`);
  return { kind: 'exec', name: values.name, host, command: command.length > 0 ? command : ['sh'] };
}

function parseProbe(args: readonly string[]): LabCommand {
  const options = { name: { type: 'string', default: defaultLab }, count: { type: 'string', default: '1' } } as const;
  const { values, positionals } = parse(args, options, true);
  const [host, protocol = '', address = '', port = ''] = positionals;
  const isProtocol = ['http', 'tcp', 'udp', 'connect'].includes(protocol);
  const isComplete = host !== undefined && isProtocol && tryParseIp(address) !== undefined && /^[0-9]+$/.test(port);
  if (!isComplete || positionals.length > 4 || !/^[1-9][0-9]{0,3}$/.test(values.count)) {
    throw invalid('use probe HOST http|tcp|udp|connect ADDRESS PORT, with a --count of at most 9999');
  }
  return { kind: 'probe', name: values.name, host, words: [protocol, address, port, values.count] };
}

type OptionsConfig = NonNullable<Parameters<typeof parseArgs>[0]>['options'] & {};

function parse<const T extends OptionsConfig>(
  args: readonly string[],
  options: T,
  allowPositionals = false,
): ReturnType<typeof parseArgs<{ args: string[]; options: T; allowPositionals: boolean; strict: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals, strict: true });
  } catch (cause) {
    throw invalid(`${messageOf(cause)}; see ./dev lab help`);
  }
}

function invalid(message: string): ConfigError {
  return new ConfigError('lab.arguments', message);
}
