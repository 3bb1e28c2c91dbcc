/** Where in the kernel's path of a packet a function stands. The names of netfilter's hooks, and `other` ones. */
export type PacketPlace = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';

/** Functions that call the hooks, IPv4 and IPv6. */
const placeFunctions: Readonly<Record<string, PacketPlace>> = {
  ip_rcv: 'prerouting',
  ip_sublist_rcv: 'prerouting',
  ip_list_rcv: 'prerouting',
  ipv6_rcv: 'prerouting',
  ip6_sublist_rcv: 'prerouting',
  ipv6_list_rcv: 'prerouting',
  ip_local_deliver: 'input',
  ip6_input: 'input',
  ip_forward: 'forward',
  ip6_forward: 'forward',
  __ip_local_out: 'output',
  __ip6_local_out: 'output',
  ip6_xmit: 'output',
  ip_output: 'postrouting',
  ip6_output: 'postrouting',
};

/** Functions that evaluate rules, from which a drop is a rule's; conntrack's drops come from the hook itself. */
const ruleFunctions: ReadonlySet<string> = new Set(['nft_do_chain', 'ipt_do_table', 'ip6t_do_table']);
const hookFunctions: ReadonlySet<string> = new Set(['nf_hook_slow', 'nf_hook_slow_list']);
/** They give no reason for data to a connection that this side has closed (Linux 6.18). */
const tcpFunctions: ReadonlySet<string> = new Set(['tcp_v4_rcv', 'tcp_v6_rcv']);
/** Ends of routes that lead nowhere. They give no reason (Linux 6.18). */
const routeFunctions: ReadonlySet<string> = new Set([
  'ip_error',
  'ip6_pkt_drop',
  'ip6_pkt_discard',
  'dst_discard',
  'dst_discard_out',
]);
/** IPv6's end of packets that waited for a neighbour, and its callers, which the last call of a function returns to. IPv4's gives a reason. */
const neighbourFunctions: ReadonlySet<string> = new Set([
  'ndisc_error_report',
  'neigh_invalidate',
  'neigh_timer_handler',
]);

/** A bridge's way of a frame to a port. They give no reason (Linux 6.18). */
const bridgeFunctions: ReadonlySet<string> = new Set(['br_forward', '__br_forward', 'br_handle_frame_finish']);

/** Facts about a drop from the functions that led to it. */
export interface DropPlace {
  /** Innermost function that stands at a hook; undefined where none was found. */
  readonly at: PacketPlace | undefined;
  /** Origin of the drop: a rule, the hook without a rule's function on the stack, a route that leads nowhere, a neighbour that does not answer, TCP, a bridge, or another function. */
  readonly by: 'rule' | 'hook' | PlainEnd;
}

/** Finds places by addresses of functions. */
export interface KernelFunctions {
  placeOf(stack: readonly bigint[]): DropPlace;
  /** Functions that drop without a reason, and whose name is one. */
  readonly speaking: readonly FunctionRange[];
}

/**
 * Reads `/proc/kallsyms`. Without the right to see addresses (CAP_SYSLOG, kernel.kptr_restrict) it has zeros, and no place is ever found.
 */
export function parseKernelFunctions(kallsyms: string): KernelFunctions {
  const ranges = [...wantedRanges(kallsyms)];
  const nameOf = (address: bigint): string | undefined =>
    ranges.find(({ start, end }) => address >= start && address < end)?.name;
  const speaking = ranges.filter(({ name }) => endOf(name) !== 'kernel');
  return { speaking, placeOf: (stack) => placeOfNames(stack.map(nameOf).filter((name) => name !== undefined)) };
}

/** Addresses of a kernel function, without `end`. */
export interface FunctionRange {
  readonly name: string;
  readonly start: bigint;
  readonly end: bigint;
}

const wantedNames: ReadonlySet<string> = new Set([
  ...Object.keys(placeFunctions),
  ...ruleFunctions,
  ...hookFunctions,
  ...routeFunctions,
  ...tcpFunctions,
  ...neighbourFunctions,
  ...bridgeFunctions,
]);
/** The module of a function, and what compilers add to the names of specialized copies. */
const suffixes = /\t.*$|\.(?:isra|constprop|part)\..*$/;
const longestFunction = 0x4000n;

/** A function reaches to the address of the next line: the file is in the order of addresses. It has some 130,000 lines. */
function* wantedRanges(kallsyms: string): Generator<FunctionRange, void, undefined> {
  for (let at = 0; at < kallsyms.length;) {
    const end = endOfLine(kallsyms, at);
    const space = kallsyms.indexOf(' ', at);
    const name = kallsyms.slice(space + 3, end).replace(suffixes, '');
    if (wantedNames.has(name) && /^[tTwW]$/.test(kallsyms[space + 1] ?? '')) {
      const start = addressOf(kallsyms.slice(at, space));
      const next = addressOf(kallsyms.slice(end + 1, end + 1 + space - at));
      const isNear = next > start && next - start < longestFunction;
      if (start > 0n) yield { name, start, end: isNear ? next : start + longestFunction };
    }
    at = end + 1;
  }
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end;
}

function addressOf(digits: string): bigint {
  return /^[0-9a-f]+$/.test(digits) ? BigInt(`0x${digits}`) : 0n;
}

/** Innermost first. */
function placeOfNames(names: readonly string[]): DropPlace {
  const at = names.map((name) => placeFunctions[name]).find((place) => place !== undefined);
  const first = names[0] ?? '';
  if (ruleFunctions.has(first)) return { at, by: 'rule' };
  if (hookFunctions.has(first)) return { at, by: 'hook' };
  return { at, by: endOf(first) };
}

/** Origin that a function stands for if it drops without a reason. */
function endOf(name: string): PlainEnd {
  if (routeFunctions.has(name)) return 'route';
  if (neighbourFunctions.has(name)) return 'neighbour';
  if (bridgeFunctions.has(name)) return 'bridge';
  return tcpFunctions.has(name) ? 'tcp' : 'kernel';
}

type PlainEnd = 'route' | 'neighbour' | 'tcp' | 'bridge' | 'kernel';
