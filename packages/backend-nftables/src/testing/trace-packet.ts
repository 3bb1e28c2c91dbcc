import {
  addressAndPort,
  assertNever,
  type Flow,
  InvariantError,
  type IpAddress,
  ipFamilyOf,
  parseCidr,
  parseIp,
  cidrContains,
} from '@switchyard/core';
import { summarizeOutcomes, type TracedOutcome, type TracedVerdict } from '@switchyard/core/testing';
import { nftProtocols } from '../render/names.ts';
import { type Field, priorityMask, randomModulus, type Statement, type VerdictElement } from '../render/rules/model.ts';
import type { FakeNft } from './fake-nft.ts';
import { type FakeObject, type FakeTable, splitLast } from './nft-ruleset.ts';

/**
 * Walks the first packet of a flow through all tables of the fake, once per slot the kernel could pick, and says what
 * can come out. An endpoint that is the sender must be masqueraded; that is checked here, and
 * `masquerade` speaks of the others (true when there is no other).
 */
export function tracePacket(nft: FakeNft, flow: Flow): TracedVerdict {
  const outcomes: TracedOutcome[] = [];
  let modulus = 1;
  for (let slot = 0; slot < modulus; slot++) {
    outcomes.push(
      walk(
        nft,
        newPacket(flow, slot === 0, (mod) => {
          modulus = Math.max(modulus, mod);
          return slot % mod;
        }),
      ),
    );
  }
  return summarizeOutcomes(outcomes, flow, 'the slot');
}

interface Packet {
  readonly flow: Flow;
  readonly pick: (modulus: number) => number;
  readonly isFirstWalk: boolean;
  destination: IpAddress;
  port: string;
  priority: number;
  mark: number;
  isDnat: boolean;
  isMasqueraded: boolean;
}

type End = 'drop' | 'reject' | 'nat';

function newPacket(flow: Flow, isFirstWalk: boolean, pick: (modulus: number) => number): Packet {
  return {
    flow,
    pick,
    isFirstWalk,
    destination: flow.destination,
    port: String(flow.destinationPort),
    priority: 0,
    mark: 0,
    isDnat: false,
    isMasqueraded: false,
  };
}

function walk(nft: FakeNft, packet: Packet): TracedOutcome {
  const end = runHook(nft, packet.flow.from === 'node' ? 'output' : 'prerouting', packet);
  if (end === 'drop' || end === 'reject') return { kind: end };
  runHook(nft, 'postrouting', packet);
  if (packet.mark !== 0) throw new InvariantError(`the packet leaves with mark ${packet.mark}`);
  if (packet.isDnat && packet.priority !== 0)
    throw new InvariantError(`the packet leaves with priority ${packet.priority}`);
  if (!packet.isDnat) {
    if (packet.isMasqueraded) throw new InvariantError('a packet that is not ours would be masqueraded');
    return { kind: 'pass' };
  }
  const endpoint = addressAndPort(packet.destination, packet.port);
  return { kind: 'forward', address: packet.destination, endpoint, masquerade: packet.isMasqueraded };
}

/** Base chains of all tables; the first that translates ends the search, as in the kernel. */
function runHook(nft: FakeNft, hook: 'prerouting' | 'output' | 'postrouting', packet: Packet): End | undefined {
  for (const table of nft.ruleset.tables.values()) {
    for (const [name, chain] of table.chains) {
      if (chain.hook !== hook) continue;
      const end = runChain(table, name, packet);
      if (end !== undefined) return end;
    }
  }
  return undefined;
}

function runChain(table: FakeTable, name: string, packet: Packet): End | undefined {
  const chain = table.chains.get(name);
  if (chain === undefined) throw new InvariantError(`a rule leads to chain ${name}, which is not there`);
  for (const rule of chain.rules) {
    for (const statement of rule) {
      const result = runStatement(table, statement, packet);
      if (result === 'next rule') break;
      if (result === 'go on') continue;
      // Every jump of our rules is a goto: the chain it leads to ends the walk.
      return typeof result === 'string' ? result : runChain(table, result.goto, packet);
    }
  }
  return undefined;
}

type Step = 'go on' | 'next rule' | End | { readonly goto: string };

function runStatement(table: FakeTable, statement: Statement, packet: Packet): Step {
  switch (statement.kind) {
    case 'isProtocol':
      return onlyIf(statement.protocols.includes(nftProtocols[packet.flow.protocol]));
    case 'isLocal':
      return onlyIf(statement.address === 'saddr' ? packet.flow.from === 'node' : packet.flow.destinationIsLocal);
    case 'isDnat':
      return onlyIf(packet.isDnat !== (statement.isNegated === true));
    case 'inSet':
      return inSet(table, statement, packet);
    case 'isNot':
      return isNot(statement, packet);
    case 'hasBits':
      return onlyIf(((packet[statement.of] & statement.mask) !== 0) !== (statement.isNegated === true));
    case 'isFamily':
    case 'isState':
    case 'accept':
      throw new InvariantError(`the fake traces no rules with ${statement.kind}`);
    case 'goto':
      return { goto: statement.chain };
    case 'drop':
    case 'reject':
      return statement.kind;
    case 'count':
      return count(table, statement, packet);
    default:
      return changePacket(table, statement, packet);
  }
}

type Changing = Extract<
  Statement,
  { kind: 'setPriority' | 'maskPriority' | 'lookUpPriority' | 'setMark' | 'vmap' | 'dnat' | 'masquerade' }
>;

function changePacket(table: FakeTable, statement: Changing, packet: Packet): Step {
  switch (statement.kind) {
    case 'setPriority':
      packet.priority = statement.value;
      return 'go on';
    case 'maskPriority':
      packet.priority = (packet.priority & statement.mask) >>> 0;
      return 'go on';
    case 'lookUpPriority': {
      const found = lookUp(table, statement, packet);
      if (found === undefined) return 'next rule';
      packet.priority = Number(found);
      return 'go on';
    }
    case 'setMark':
      packet.mark = changedMark(packet.mark, statement);
      return 'go on';
    case 'vmap': {
      const target = verdictOf(table, statement.map, (packet.priority & statement.mask) >>> 0);
      return target === undefined ? 'next rule' : { goto: target };
    }
    case 'dnat': {
      const [address, port] = lookUp(table, statement, packet)?.split(' . ') ?? [];
      if (address === undefined || port === undefined) return 'next rule';
      Object.assign(packet, { destination: parseIp(address), port, isDnat: true });
      return 'nat';
    }
    case 'masquerade':
      packet.isMasqueraded = true;
      return 'nat';
    default:
      return assertNever(statement);
  }
}

function changedMark(mark: number, { operation, value }: Extract<Statement, { kind: 'setMark' }>): number {
  if (operation === 'and') return mark & value;
  return operation === 'or' ? mark | value : mark ^ value;
}

const onlyIf = (condition: boolean): Step => (condition ? 'go on' : 'next rule');

const isSix = (packet: Packet): boolean => ipFamilyOf(packet.flow.source) === 'IPv6';

function verdictOf(table: FakeTable, map: string | readonly VerdictElement[], value: number): string | undefined {
  if (typeof map !== 'string') return map.find(({ key }) => key === value)?.chain;
  const elements = [...(table.objects.get(map)?.elements ?? [])];
  return elements.find(([key]) => Number(key) === value)?.[1].replace(/^goto /, '');
}

function lookUp(
  table: FakeTable,
  { fields, map }: { readonly fields: readonly Field[]; readonly map: string },
  packet: Packet,
): string | undefined {
  const key = keyOf(fields, packet);
  const object = table.objects.get(map);
  if (object === undefined) throw new InvariantError(`a rule looks into ${map}, which is not there`);
  const found = key === undefined ? undefined : object.elements.get(key);
  if (key !== undefined && found !== undefined) countPacket(object, key, packet);
  return found;
}

function inSet(table: FakeTable, statement: Extract<Statement, { kind: 'inSet' }>, packet: Packet): Step {
  const key = keyOf(statement.fields, packet);
  if (key === undefined) return 'next rule';
  const object = table.objects.get(statement.set);
  if (object === undefined) throw new InvariantError(`a rule looks into ${statement.set}, which is not there`);
  const isIn = object.isInterval ? isInInterval([...object.elements.keys()], key) : object.elements.has(key);
  return onlyIf(isIn !== (statement.isNegated === true));
}

/** In a concatenation the last part is the interval. */
function isInInterval(elements: readonly string[], key: string): boolean {
  const [place, value] = splitLast(key);
  return elements.map(splitLast).some(([at, interval]) => at === place && covers(interval, value));
}

function covers(interval: string, value: string): boolean {
  if (!interval.startsWith('"')) return cidrContains(parseCidr(interval), parseIp(value));
  return interval.endsWith('*"') ? value.startsWith(interval.slice(0, -2)) : value === interval;
}

function count(table: FakeTable, { fields, set }: Extract<Statement, { kind: 'count' }>, packet: Packet): Step {
  const key = keyOf(fields, packet);
  const object = table.objects.get(set);
  if (object === undefined) throw new InvariantError(`a rule counts in ${set}, which is not there`);
  if (key === undefined) return 'next rule';
  object.elements.set(key, '');
  countPacket(object, key, packet);
  return 'go on';
}

/** Each flow counts once, though it is walked once per slot. */
function countPacket(object: FakeObject, key: string, packet: Packet): void {
  if (packet.isFirstWalk && object.isCounted) object.counts.set(key, (object.counts.get(key) ?? 0) + 1);
}

function isNot({ field, cidr }: Extract<Statement, { kind: 'isNot' }>, packet: Packet): Step {
  const value = keyOf([field], packet);
  if (value === undefined) return 'next rule';
  const wide = cidr.includes('/') ? cidr : `${cidr}/${cidr.includes(':') ? 128 : 32}`;
  return onlyIf(!cidrContains(parseCidr(wide), parseIp(value)));
}

/** The packet's key; undefined when it has no such field: a rule on the other family does not match. */
function keyOf(fields: readonly Field[], packet: Packet): string | undefined {
  const parts = fields.map((field) => valueOf(field, packet));
  return parts.includes(undefined) ? undefined : parts.join(' . ');
}

function valueOf(field: Field, packet: Packet): string | undefined {
  const mine = isSix(packet) ? 'ip6 ' : 'ip ';
  if (field.startsWith('ip')) {
    if (!field.startsWith(mine)) return undefined;
    return field.endsWith('saddr') ? packet.flow.source : packet.destination;
  }
  if (field === 'meta l4proto') return nftProtocols[packet.flow.protocol];
  if (field === 'th dport') return packet.port;
  // Packets of the node itself have no incoming interface: the kernel compares an empty name.
  if (field === 'iifname') return JSON.stringify(packet.flow.incomingInterface ?? '');
  const modulus = randomModulus(field);
  if (modulus !== undefined) return String(packet.pick(modulus));
  const mask = priorityMask(field);
  const priority = mask === undefined ? packet.priority : packet.priority & mask;
  return `0x${(priority >>> 0).toString(16)}`;
}
