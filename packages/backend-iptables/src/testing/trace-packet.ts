import {
  addressAndPort,
  assertNever,
  type Flow,
  InvariantError,
  type IpAddress,
  ipFamilyOf,
  parseIp,
} from '@switchyard/core';
import { summarizeOutcomes, type TracedOutcome, type TracedVerdict } from '@switchyard/core/testing';
import type { FakeIptables } from './fake-iptables.ts';
import type { FakeTable } from './fake-table.ts';
import { matchesPacket, type Packet } from './match-packet.ts';
import type { Target } from './rule-types.ts';

/** One way a packet can go. */
type Outcome =
  | (Extract<TracedOutcome, { readonly kind: 'forward' }> & {
      /** Lists of `-m recent` that have the client from then on. */
      readonly remembered: readonly string[];
    })
  | Exclude<TracedOutcome, { readonly kind: 'forward' }>;

/**
 * Walks the first packet of a flow through all tables of the fake, of both variants, once for each way that chance could choose,
 * and says what can come out. An endpoint that is the sender must be masqueraded; that is checked here, and `masquerade` speaks
 * of the others (true when there is no other). Rules count the packet once.
 *
 * The lists of `-m recent` are those of the fake, and stay as they are.
 */
export function tracePacket(fake: FakeIptables, flow: Flow): TracedVerdict {
  return summarizeOutcomes(outcomesOf(fake, flow, fake.recent), flow, 'chance');
}

/** The same for a client that was at this endpoint before: what session affinity makes of it. */
export function traceReturning(fake: FakeIptables, flow: Flow, endpoint: IpAddress): TracedVerdict {
  const before = outcomesOf(fake, flow, fake.recent).find((one) => one.kind === 'forward' && one.address === endpoint);
  if (before?.kind !== 'forward') throw new InvariantError(`no client of this flow can have been at ${endpoint}`);
  const recent = new Map(before.remembered.map((list) => [list, new Set([flow.source])]));
  return summarizeOutcomes(outcomesOf(fake, flow, recent), flow, 'chance');
}

function outcomesOf(fake: FakeIptables, flow: Flow, recent: Packet['recent']): readonly Outcome[] {
  const outcomes: Outcome[] = [];
  let plan: readonly boolean[] | undefined = [];
  while (plan !== undefined) {
    const made: boolean[] = [];
    const fixed: readonly boolean[] = plan;
    const choose = (): boolean => {
      const choice = fixed[made.length] ?? true;
      made.push(choice);
      return choice;
    };
    outcomes.push(new Walk(fake, newPacket(flow, choose, recent), outcomes.length === 0).run());
    plan = nextPlan(made);
  }
  return outcomes;
}

/** The last choice that was "matches" becomes "does not"; undefined when there is none left. */
function nextPlan(made: readonly boolean[]): readonly boolean[] | undefined {
  const last = made.lastIndexOf(true);
  return last < 0 ? undefined : [...made.slice(0, last), false];
}

function newPacket(flow: Flow, choose: () => boolean, recent: Packet['recent']): Packet {
  return {
    flow,
    choose,
    recent,
    remembered: [],
    destination: flow.destination,
    port: String(flow.destinationPort),
    mark: 0,
    isDnat: false,
    isMasqueraded: false,
  };
}

type End = 'accept' | 'drop' | 'reject' | 'nat' | 'return';
type Stage = readonly [table: string, chain: string];

const tablesInOrder = ['raw', 'mangle', 'nat', 'filter', 'security'];
const at = (...chains: readonly string[]): readonly Stage[] =>
  chains.flatMap((chain) => tablesInOrder.map((table): Stage => [table, chain]));

/** One way of one packet. */
class Walk {
  readonly #fake: FakeIptables;
  readonly #packet: Packet;
  readonly #isFirst: boolean;

  constructor(fake: FakeIptables, packet: Packet, isFirst: boolean) {
    this.#fake = fake;
    this.#packet = packet;
    this.#isFirst = isFirst;
  }

  run(): Outcome {
    const packet = this.#packet;
    const { flow } = packet;
    const end = this.#pass(at(flow.from === 'node' ? 'OUTPUT' : 'PREROUTING')) ?? this.#pass(this.#afterRouting());
    if (end !== undefined) return { kind: end };
    if (packet.mark !== 0) throw new InvariantError(`the packet leaves with mark 0x${packet.mark.toString(16)}`);
    if (!packet.isDnat) {
      if (packet.isMasqueraded) throw new InvariantError('a packet that is not ours would be masqueraded');
      return { kind: 'pass' };
    }
    const { destination: address, port, isMasqueraded: masquerade, remembered } = packet;
    return { kind: 'forward', address, endpoint: addressAndPort(address, port), masquerade, remembered };
  }

  /** Packets to this node pass INPUT, its own by way of `lo`; endpoints are assumed to be on other nodes. */
  #afterRouting(): readonly Stage[] {
    const { flow, isDnat } = this.#packet;
    const isForUs = flow.destinationIsLocal && !isDnat;
    if (flow.from === 'node') return isForUs ? at('POSTROUTING', 'INPUT') : at('POSTROUTING');
    return isForUs ? at('INPUT') : at('FORWARD', 'POSTROUTING');
  }

  #pass(stages: readonly Stage[]): 'drop' | 'reject' | undefined {
    for (const [name, chain] of stages) {
      for (const table of this.#tables(name)) {
        const end = this.#base(table, chain);
        if (end === 'drop' || end === 'reject') return end;
        // The first translation wins.
        if (end === 'nat') break;
      }
    }
    return undefined;
  }

  /** Those of both variants. Of two nat tables the kernel asks the newer one first. */
  #tables(name: string): readonly FakeTable[] {
    const prefix = `${ipFamilyOf(this.#packet.flow.source)} `;
    const found = [...this.#fake.tables].filter(([key, table]) => key.startsWith(prefix) && table.name === name);
    const tables = found.map(([, table]) => table);
    return name === 'nat' ? tables.toReversed() : tables;
  }

  #base(table: FakeTable, name: string): End {
    const chain = table.chains.get(name);
    if (chain === undefined) return 'accept';
    const end = this.#chain(table, name);
    return end === 'return' && chain.policy === 'DROP' ? 'drop' : end;
  }

  #chain(table: FakeTable, name: string): End {
    const chain = table.chains.get(name);
    if (chain === undefined) throw new InvariantError(`a rule leads to chain ${name}, which is not there`);
    for (const entry of chain.entries) {
      if (!matchesPacket(entry.rule, this.#packet)) continue;
      if (this.#isFirst) {
        entry.packets += 1;
        entry.bytes += 60;
      }
      const end = entry.rule.target === undefined ? 'next' : this.#target(table, entry.rule.target);
      if (end !== 'next') return end;
    }
    return 'return';
  }

  #target(table: FakeTable, target: Target): End | 'next' {
    const packet = this.#packet;
    switch (target.kind) {
      case 'ACCEPT':
        return 'accept';
      case 'DROP':
        return 'drop';
      case 'REJECT':
        return 'reject';
      case 'RETURN':
        return 'return';
      case 'chain': {
        const end = this.#chain(table, target.chain);
        return end === 'return' && !target.isGoto ? 'next' : end;
      }
      case 'MARK':
        packet.mark = ((packet.mark & ~target.mark.mask) ^ target.mark.value) >>> 0;
        return 'next';
      case 'DNAT':
        this.#translate(target.destination);
        return 'nat';
      case 'MASQUERADE':
        packet.isMasqueraded = true;
        return 'nat';
      default:
        return assertNever(target);
    }
  }

  #translate(destination: string): void {
    const [, bracketed, plain, port] = /^(?:\[(.*)\]|([^:]*|.*:.*:.*?))(?::(\d+))?$/.exec(destination) ?? [];
    const packet = this.#packet;
    packet.destination = parseIp(bracketed ?? plain ?? destination);
    packet.port = port ?? packet.port;
    packet.isDnat = true;
  }
}
