import { addressAndPort, tryParseIp, type IpFamily, millis } from '@switchyard/core';
import type { LabNode } from '@switchyard/lab';
import { stations, traceTable } from './trace-monitor.ts';

/** A packet's addresses as one hook saw them. Ports are 0 where there are none (ICMP). */
export interface PacketHead {
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
  /** `tcp`, `udp`, `icmp`, ... */
  readonly protocol: string;
  readonly incoming: string | undefined;
  readonly outgoing: string | undefined;
}

/** One packet on its way through the kernel. */
export interface PacketPath {
  /** Nftables' number for it; distinct packets of one trace have distinct ones. */
  readonly id: string;
  /** Addresses at the first of our chains. */
  readonly head: PacketHead;
  /** Addresses at the last hook. */
  readonly tail: PacketHead;
  /** Whether it passed postrouting, or was taken by the node itself. */
  readonly end: 'left' | 'received' | 'gone';
  /** The first thing seen of it is that it came in or was sent. */
  readonly isWhole: boolean;
  /** One line per station and matching rule: hook, table and chain, rule, verdict. */
  readonly lines: readonly string[];
}

interface OpenPath {
  readonly id: string;
  readonly heads: PacketHead[];
  readonly lines: string[];
  readonly passed: Set<string>;
  hook: string;
  shown: string;
}

const eventPattern = /^trace id (\S+) (\S+) (\S+) (\S+) (packet:|rule|unknown rule|policy|verdict|return)(.*)$/;

/** Reads what `nft monitor trace` printed; packets in the order they came. Lines it does not know are left out. */
export function readTrace(text: string): readonly PacketPath[] {
  const paths = new Map<string, OpenPath>();
  for (const line of text.split('\n')) {
    const match = eventPattern.exec(line.trim());
    if (match === null) continue;
    const [, id = '', family = '', table = '', chain = '', kind = '', rest = ''] = match;
    let path = paths.get(id);
    if (path === undefined) {
      path = { id, heads: [], lines: [], passed: new Set(), hook: '', shown: '' };
      paths.set(id, path);
    }
    if (kind === 'packet:') onPacket(path, rest, table === traceTable ? chain : undefined);
    else if (table !== traceTable) onRule(path, `${family} ${table}/${chain}`, { kind, rest: rest.trim() });
  }
  return joined([...paths.values()].flatMap((path) => finished(path)));
}

/** Joins paths of one packet. The kernel may give a packet from a bridge another id half-way, so a path may begin in the middle. */
function joined(paths: readonly PacketPath[]): readonly PacketPath[] {
  const whole: PacketPath[] = [];
  for (const path of paths) {
    const at = path.isWhole
      ? -1
      : whole.findLastIndex(({ end, tail }) => end === 'gone' && isSameFlow(tail, path.head));
    const before = whole[at];
    if (before === undefined) whole.push(path);
    else whole[at] = { ...before, tail: path.tail, end: path.end, lines: [...before.lines, ...path.lines] };
  }
  return whole;
}

function isSameFlow(a: PacketHead, b: PacketHead): boolean {
  const same = (['source', 'sourcePort', 'destination', 'destinationPort', 'protocol'] as const).every(
    (field) => a[field] === b[field],
  );
  return same && a.incoming === b.incoming;
}

function finished({ id, heads, lines, passed }: OpenPath): readonly PacketPath[] {
  const [head] = heads;
  const tail = heads.at(-1);
  if (head === undefined || tail === undefined) return [];
  const end = passed.has('at-postrouting') ? 'left' : passed.has('at-input') ? 'received' : 'gone';
  const isWhole = [...passed].some((chain) => chain.startsWith('early-') || chain.startsWith('reply-'));
  return [{ id, head, tail, end, isWhole, lines }];
}

/** At each base chain nftables reports the packet first. Its interfaces and earlier chains show the hook. */
function onPacket(path: OpenPath, text: string, ownChain: string | undefined): void {
  const head = readHead(text);
  if (head === undefined) return;
  path.heads.push(head);
  path.hook = hookOf(head, path.passed);
  if (ownChain === undefined) return;
  path.passed.add(ownChain);
  const station = stations.get(ownChain);
  // A reply is marked by a chain of its own, which counts as its first station.
  const words = station ?? (path.lines.length === 0 ? replyStation(ownChain) : undefined);
  if (words === undefined) return;
  const shown = headText(head);
  path.lines.push(
    `${words}${interfaces(head, ownChain)}: ${shown}${shown === path.shown || path.shown === '' ? '' : '  (changed)'}`,
  );
  path.shown = shown;
}

function replyStation(chain: string): string | undefined {
  if (chain === 'reply-prerouting') return stations.get('early-prerouting');
  return chain === 'reply-output' ? stations.get('early-output') : undefined;
}

function interfaces({ incoming, outgoing }: PacketHead, chain: string): string {
  if (chain.endsWith('-prerouting')) return incoming === undefined ? '' : ` by ${incoming}`;
  if (chain === 'at-forward') return ` from ${incoming} to ${outgoing}`;
  return chain === 'at-postrouting' && outgoing !== undefined ? ` by ${outgoing}` : '';
}

function hookOf({ incoming, outgoing }: PacketHead, passed: ReadonlySet<string>): string {
  if (incoming === undefined) return passed.has('at-output') ? 'postrouting' : 'output';
  if (outgoing !== undefined) return passed.has('at-forward') ? 'postrouting' : 'forward';
  return passed.has('at-prerouting') ? 'input' : 'prerouting';
}

interface RuleEvent {
  readonly kind: string;
  readonly rest: string;
}

function onRule(path: OpenPath, place: string, { kind, rest }: RuleEvent): void {
  const [, text = '', verdict = ''] = /^(.*?)\s*\(verdict (.*)\)$/.exec(rest) ?? [undefined, rest, ''];
  if (kind === 'rule') path.lines.push(`${path.hook}  ${place}  ${tidy(text)}  => ${verdict}`);
  // A rule that was made after the monitor had begun is known by its number alone.
  else if (kind === 'unknown rule') path.lines.push(`${path.hook}  ${place}  rule ${text}  => ${verdict}`);
  else if (kind === 'policy' && !rest.startsWith('accept')) path.lines.push(`${path.hook}  ${place}  policy ${rest}`);
}

/** Counters of a trace are always 0. */
function tidy(rule: string): string {
  return rule
    .replaceAll(/counter packets \d+ bytes \d+ ?/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

function readHead(text: string): PacketHead | undefined {
  const word = (pattern: RegExp): string | undefined => pattern.exec(text)?.[1];
  const source = word(/ ip6? saddr (\S+)/);
  const destination = word(/ ip6? daddr (\S+)/);
  if (source === undefined || destination === undefined) return undefined;
  return {
    source: canonical(source),
    destination: canonical(destination),
    sourcePort: Number(word(/ sport (\d+)/) ?? 0),
    destinationPort: Number(word(/ dport (\d+)/) ?? 0),
    protocol: word(/ (tcp|udp|sctp) sport /) ?? word(/ (?:ip protocol|ip6 nexthdr) (\S+)/) ?? '',
    incoming: word(/ iif "([^"]*)"/),
    outgoing: word(/ oif "([^"]*)"/),
  };
}

function headText({ source, sourcePort, destination, destinationPort, protocol }: PacketHead): string {
  const end = (address: string, port: number): string => (port === 0 ? address : addressAndPort(address, port));
  return `${end(source, sourcePort)} -> ${end(destination, destinationPort)} ${protocol}`;
}

/** One flow of /proc/net/nf_conntrack: how it began, and how its answers look. */
export interface ConntrackEntry {
  readonly protocol: string;
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
  /** Both tuples and the state as text. */
  readonly text: string;
}

/** Reads /proc/net/nf_conntrack of one network namespace. Lines without two tuples are left out. */
export function readConntrack(text: string): readonly ConntrackEntry[] {
  return text.split('\n').flatMap((line) => {
    const values = (key: string): readonly string[] =>
      [...line.matchAll(new RegExp(`(?:^| )${key}=(\\S+)`, 'g'))].map((match) => match[1] ?? '');
    const sources = values('src').map(canonical);
    const destinations = values('dst').map(canonical);
    if (sources.length < 2 || destinations.length < 2) return [];
    const sourcePorts = values('sport').map(Number);
    const ports = values('dport').map(Number);
    const protocol = line.trim().split(/\s+/)[2] ?? '';
    const tuple = (which: 0 | 1): string =>
      `${addressAndPort(sources[which] ?? '', sourcePorts[which] ?? 0)} -> ${addressAndPort(destinations[which] ?? '', ports[which] ?? 0)}`;
    const marks = [...line.matchAll(/\[\w+\]| (?:CLOSE|ESTABLISHED|[A-Z]{3,}_[A-Z0-9_]+) /g)].map(([mark]) =>
      mark.trim(),
    );
    return [
      {
        protocol,
        source: sources[0] ?? '',
        sourcePort: sourcePorts[0] ?? 0,
        destination: destinations[0] ?? '',
        destinationPort: ports[0] ?? 0,
        text: `${tuple(0)} ${protocol}, answered as ${tuple(1)}${marks.length > 0 ? ` (${marks.join(' ')})` : ''}`,
      },
    ];
  });
}

/** An address in its canonical text; other text as it is. */
export function canonical(address: string): string {
  return tryParseIp(address) ?? address;
}

/** More rules than a packet and its answer match; further ones are other traffic of the node. */
const most = 40;

/**
 * Reads the counters of iptables-legacy's rules, which nftables' traces do not show. Returns what reads them again: the rules that
 * packets have matched since, one line each, other traffic of the node included. A node without iptables-legacy has none.
 */
export async function readCounters(node: LabNode, family: IpFamily): Promise<() => Promise<readonly string[]>> {
  const program = family === 'IPv4' ? 'iptables-legacy-save' : 'ip6tables-legacy-save';
  const before = await saved(node, program);
  return async () => {
    const after = before === undefined ? undefined : await saved(node, program);
    const rises = before === undefined || after === undefined ? [] : counterDifference(before, after);
    if (rises.length === 0) return [];
    return ['counters of iptables-legacy that rose meanwhile:', ...rises.slice(0, most).map((line) => `  ${line}`)];
  };
}

/** Undefined where the program is missing or there are no such rules. */
async function saved(node: LabNode, program: string): Promise<string | undefined> {
  const result = await node.run(program, ['-c'], { timeout: millis(2_000) }).catch(() => undefined);
  return result?.exitCode === 0 && result.stdout !== '' ? result.stdout : undefined;
}

/** A rule of `iptables-save -c` that packets matched in between, as `table chain  +packets  rule`. */
export function counterDifference(before: string, after: string): readonly string[] {
  const known = new Map(counters(before).map(({ key, packets }) => [key, packets]));
  return counters(after).flatMap(({ key, packets, text }) => {
    const more = packets - (known.get(key) ?? 0);
    return more > 0 ? [`${text}  +${more}`] : [];
  });
}

interface Counter {
  readonly key: string;
  readonly packets: number;
  readonly text: string;
}

function counters(save: string): readonly Counter[] {
  let table = '';
  const seen = new Map<string, number>();
  return save.split('\n').flatMap((line) => {
    if (line.startsWith('*')) table = line.slice(1).trim();
    const [, packets = '', chain = '', spec = ''] = /^\[(\d+):\d+\] -A (\S+) ?(.*)$/.exec(line) ?? [];
    if (chain === '') return [];
    const text = `${table}/${chain}  ${spec}`;
    // The same rule may stand in a chain twice.
    const nth = (seen.get(text) ?? 0) + 1;
    seen.set(text, nth);
    return [{ key: `${text} #${nth}`, packets: Number(packets), text }];
  });
}
