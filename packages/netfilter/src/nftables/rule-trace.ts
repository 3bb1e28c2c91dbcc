import { type IpAddress, ipFamilyOf, type IpFamily, ipFromBytes, ipToBytes, type Port } from '@switchyard/core';
import {
  type NetlinkMessage,
  type NetlinkSocket,
  NLM_F,
  openNetlinkSocket,
  readAttributes,
  readMessages,
  readText,
  readUint32be,
  readUint64be,
  receiveNotices,
  type MessageWriter,
  type WriteBody,
} from '@switchyard/native';
import { familyNumbers, NFT_MSG, NFTA } from './constants.ts';
import {
  compare,
  limitPackets,
  loadMeta,
  loadNumber,
  loadPayload,
  loadSource,
  metaKey,
  setMeta,
} from './expressions.ts';
import { RulesReader, type TableFamily } from './rules-reader.ts';
import { type TableChange, transact } from './tables.ts';

/** Packets between a client and the servers that answer it. */
export interface TracedTraffic {
  readonly client: IpAddress;
  /** Addresses of a Service and of its endpoints. */
  readonly servers: ReadonlySet<IpAddress>;
  /** Of the servers. */
  readonly ports: ReadonlySet<Port>;
  readonly protocol: 'TCP' | 'UDP';
}

/** Rule of nftables, or policy of a chain, that dropped a packet. */
export interface DroppingRule {
  /** As nft spells it, such as `inet`. */
  readonly family: string;
  readonly table: string;
  readonly chain: string;
  /** Undefined: the chain's policy. */
  readonly rule?: {
    readonly handle: bigint;
    /** In its chain, from 1; undefined for one that was deleted meanwhile. */
    readonly position: number | undefined;
  };
}

/** A trace in progress. Closing it removes what it added to the rules. */
export interface RuleTrace extends Disposable {
  /** The rule or policy that dropped a packet of the traffic up to now; undefined if none of nftables did. */
  droppedBy(): DroppingRule | undefined;
}

/** Several may run: the port id of a socket is unique. */
const tableOf = ({ portId }: NetlinkSocket): string => `switchyard-trace-${portId}`;
/** Before the rules of other programs, and before connection tracking. */
const priority = -301;
const chains = [
  { name: 'prerouting', hook: 0 },
  { name: 'output', hook: 3 },
] as const;
/** Traced packets for each port and direction. */
const budget = 20;
/** NFNLGRP_NFTRACE. */
const traceGroup = 9;
/** NFT_TABLE_F_OWNER (Linux 5.12): the kernel deletes the table when the socket is closed, also after a crash. */
const isOwned = 0x2;
/** A packet is reported for each chain and rule it meets. */
const receiveBuffer = 1 << 20;
const headerLength = 4;

/**
 * Lets the kernel report which rules the next packets of the traffic meet, at most 20 for each port and direction. It adds the table
 * `switchyard-trace-N`, which the kernel deletes with the caller's socket; it has no other effect on packets. Throws `HostError`: it needs
 * CAP_NET_ADMIN and Linux 5.12. `netns`: default the process's own.
 */
export function openRuleTrace(traffic: TracedTraffic, netns?: string): RuleTrace {
  const socket = openNetlinkSocket({ protocol: 'netfilter', netns, groups: [traceGroup], receiveBuffer });
  try {
    const table = tableOf(socket);
    transact(socket, `cannot add the nftables table ${table}`, changesFor(traffic, table));
  } catch (error) {
    socket[Symbol.dispose]();
    throw error;
  }
  const packets = new TracedPackets(traffic);
  return {
    droppedBy: () => {
      for (const datagram of receiveNotices(socket, new Uint8Array(1 << 16))) {
        if (datagram !== undefined) for (const message of readMessages(datagram)) packets.read(datagram, message);
      }
      return packets.dropped === undefined ? undefined : withPosition(packets.dropped, netns);
    },
    [Symbol.dispose]: () => socket[Symbol.dispose](),
  };
}

function changesFor({ client, ports, protocol }: TracedTraffic, table: string): readonly TableChange[] {
  const ipFamily = ipFamilyOf(client);
  const family = familyNumbers[ipFamily === 'IPv4' ? 'ip' : 'ip6'];
  const create = (type: number, more: number, body: WriteBody): TableChange => ({
    type,
    flags: NLM_F.CREATE | more,
    body: (writer) => {
      writer.netfilterHeader(family, 0);
      body(writer);
    },
  });
  const tableChange = create(NFT_MSG.NEWTABLE, 0, (writer) => {
    writer.attributeText(NFTA.TABLE.NAME, table);
    writer.attributeUint32be(NFTA.TABLE.FLAGS, isOwned);
  });
  const chainChanges = chains.map(({ name, hook }) =>
    create(NFT_MSG.NEWCHAIN, 0, (writer) => {
      writer.attributeText(NFTA.CHAIN.TABLE, table);
      writer.attributeText(NFTA.CHAIN.NAME, name);
      writer.nested(NFTA.CHAIN.HOOK, () => {
        writer.attributeUint32be(NFTA.HOOK.NUMBER, hook);
        writer.attributeUint32be(NFTA.HOOK.PRIORITY, priority >>> 0);
      });
      writer.attributeText(NFTA.CHAIN.TYPE, 'filter');
    }),
  );
  const matches = [...ports].flatMap((port) => (['request', 'answer'] as const).map((way) => ({ port, way })));
  const ruleChanges = chains.flatMap(({ name }) =>
    matches.map(({ port, way }) =>
      create(NFT_MSG.NEWRULE, NLM_F.APPEND, (writer) => {
        writer.attributeText(NFTA.RULE.TABLE, table);
        writer.attributeText(NFTA.RULE.CHAIN, name);
        writer.nested(NFTA.RULE.EXPRESSIONS, () => writeRule(writer, { client, ipFamily, protocol, port, way }));
      }),
    ),
  );
  return [tableChange, ...chainChanges, ...ruleChanges];
}

interface Match extends Pick<TracedTraffic, 'client' | 'protocol'> {
  readonly ipFamily: IpFamily;
  readonly port: Port;
  readonly way: 'request' | 'answer';
}

const protocolNumbers = { TCP: 6, UDP: 17 } as const;

/** A register of 16 bytes. */
const register = 1;

function writeRule(writer: MessageWriter, { client, ipFamily, protocol, port, way }: Match): void {
  const isIpv6 = ipFamily === 'IPv6';
  const isRequest = way === 'request';
  if (isRequest) loadSource(writer, register, isIpv6);
  else loadPayload(writer, isIpv6 ? { base: 1, offset: 24, length: 16 } : { base: 1, offset: 16, length: 4 }, register);
  compare(writer, register, ipToBytes(client));
  loadMeta(writer, metaKey.l4proto, register);
  compare(writer, register, Uint8Array.of(protocolNumbers[protocol]));
  loadPayload(writer, { base: 2, offset: isRequest ? 2 : 0, length: 2 }, register);
  compare(writer, register, Uint8Array.of(port >> 8, port & 0xff));
  limitPackets(writer, budget);
  loadNumber(writer, 1, register);
  setMeta(writer, metaKey.nftrace, register);
}

/** Reads the reports; the kernel adds a packet's header to the first of each hook. */
class TracedPackets {
  dropped: DroppingRule | undefined;
  readonly #traffic: TracedTraffic;
  readonly #isOfTraffic = new Map<number, boolean>();

  constructor(traffic: TracedTraffic) {
    this.#traffic = traffic;
  }

  read(bytes: Uint8Array, { type, start, end }: NetlinkMessage): void {
    if (type !== NFT_MSG.TRACE || this.dropped !== undefined) return;
    const at = new Map<number, Span>();
    for (const one of readAttributes(bytes, start + headerLength, end)) at.set(one.type, one);
    const numberOf = (attribute: number): number | undefined => {
      const found = at.get(attribute);
      return found === undefined ? undefined : readUint32be(bytes, found.start);
    };
    const textOf = (attribute: number): string => {
      const found = at.get(attribute);
      return found === undefined ? '' : readText(bytes, found.start, found.end);
    };
    const id = numberOf(NFTA.TRACE.ID) ?? 0;
    const header = at.get(NFTA.TRACE.NETWORK_HEADER);
    if (header !== undefined) this.#isOfTraffic.set(id, this.#isBetween(bytes.subarray(header.start, header.end)));
    if (this.#isOfTraffic.get(id) !== true) return;
    const kind = numberOf(NFTA.TRACE.TYPE);
    const handle = at.get(NFTA.TRACE.RULE_HANDLE);
    const isDrop =
      kind === traceType.policy
        ? numberOf(NFTA.TRACE.POLICY) === NF_DROP
        : kind === traceType.rule && verdictCode(bytes, at.get(NFTA.TRACE.VERDICT)) === NF_DROP;
    if (!isDrop) return;
    this.dropped = {
      family: familyNames[bytes[start] ?? 0] ?? `family ${bytes[start]}`,
      table: textOf(NFTA.TRACE.TABLE),
      chain: textOf(NFTA.TRACE.CHAIN),
      ...(kind === traceType.rule && handle !== undefined
        ? { rule: { handle: readUint64be(bytes, handle.start), position: undefined } }
        : {}),
    };
  }

  #isBetween(header: Uint8Array): boolean {
    const { client, servers, protocol } = this.#traffic;
    const [next, first, length] = ipFamilyOf(client) === 'IPv4' ? [9, 12, 4] : [6, 8, 16];
    if (header.length < first + 2 * length || header[next] !== protocolNumbers[protocol]) return false;
    const source = ipFromBytes(header.subarray(first, first + length));
    const destination = ipFromBytes(header.subarray(first + length, first + 2 * length));
    return (source === client && servers.has(destination)) || (destination === client && servers.has(source));
  }
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** NFT_TRACETYPE_... */
const traceType = { policy: 1, rule: 3 } as const;
const NF_DROP = 0;
/** NFPROTO_..., as nft spells it. */
const familyNames: Readonly<Record<number, string>> = { 1: 'inet', 2: 'ip', 5: 'netdev', 7: 'bridge', 10: 'ip6' };

function verdictCode(bytes: Uint8Array, verdict: Span | undefined): number | undefined {
  if (verdict === undefined) return undefined;
  for (const { type, start } of readAttributes(bytes, verdict.start, verdict.end)) {
    if (type === NFTA.VERDICT.CODE) return readUint32be(bytes, start);
  }
  return undefined;
}

function withPosition(dropped: DroppingRule, netns: string | undefined): DroppingRule {
  const { family, table: of, chain, rule } = dropped;
  if (rule === undefined || !(family in familyNumbers)) return dropped;
  using socket: NetlinkSocket = openNetlinkSocket({ protocol: 'netfilter', netns });
  const texts = { attempt: `cannot read the rules of chain ${family} ${of} ${chain}`, code: 'nftables' };
  const reader = new RulesReader(socket, texts, family as TableFamily); // it is one of them
  const index = reader.rules(of, chain).findIndex(({ handle }) => handle === rule.handle);
  return { ...dropped, rule: { ...rule, position: index < 0 ? undefined : index + 1 } };
}
