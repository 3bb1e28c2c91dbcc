import { addressAndPort } from '@switchyard/core';
import { canonical } from './conntrack-entries.ts';
import { stations, traceTable } from './trace-table.ts';

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
