import { createHash } from 'node:crypto';
import { constants } from 'node:os';
import {
  type AskerTexts,
  NetlinkAsker,
  type NetlinkAttribute,
  type NetlinkMessage,
  type NetlinkSocket,
  readAttributes,
  readText,
  readUint32be,
  type WriteBody,
} from '@switchyard/native';

/** The guard table in the kernel. */
export interface DumpedGuard {
  /** The table is inactive (`flags dormant`). */
  readonly sleeps: boolean;
  readonly chains: readonly GuardChain[];
}

/** One chain of the guard table with its rules, as the kernel describes them. */
export interface GuardChain {
  readonly name: string;
  /** Digest of hook, policy, type and rules, without counters and handles. */
  readonly digest: string;
}

/** Requests of nf_tables.h: the subsystem is in the high byte. */
const requests = { getTable: 0xa01, getChain: 0xa04, getRule: 0xa07, getGeneration: 0xa10 } as const;
const familyInet = 1;
const tableAttributes = { name: 1, flags: 2 } as const;
/** Hook, policy, type, flags. */
const chainSettings: ReadonlySet<number> = new Set([4, 5, 7, 10]);
const chainAttributes = { table: 1, name: 3 } as const;
const ruleAttributes = { table: 1, chain: 2, expressions: 4 } as const;
const generationId = 1;
const dormant = 1;
/** Length of `struct nfgenmsg`. */
const headerLength = 4;

const texts: AskerTexts = { attempt: 'cannot read the rules of the kernel', code: 'ebpf.guard' };

/** Reads rules of nftables over a socket of its own. Throws `HostError` and `NativeError`. */
export class GuardReader {
  readonly #asker: NetlinkAsker;

  constructor(socket: NetlinkSocket) {
    this.#asker = new NetlinkAsker(socket, texts);
  }

  /** Number of the rule generation, which grows with each change of any table of the network namespace. */
  generation(): number {
    const read = numberOf(generationId);
    return this.#asker.get(requests.getGeneration, header, { read }) ?? 0;
  }

  /** Undefined without such a table. */
  read(table: string): DumpedGuard | undefined {
    const flags = this.#tableFlags(table);
    if (flags === undefined) return undefined;
    const hashes = new Map<string, ReturnType<typeof createHash>>();
    for (const bytes of this.#dump(requests.getChain, table)) {
      const attributes = [...readAttributes(bytes, headerLength, bytes.length)];
      if (textOf(bytes, attributes, chainAttributes.table) !== table) continue;
      const hash = createHash('sha256');
      for (const { type, start, end } of attributes) {
        if (chainSettings.has(type)) hash.update(bytes.subarray(start, end));
      }
      hashes.set(textOf(bytes, attributes, chainAttributes.name), hash);
    }
    for (const bytes of this.#dump(requests.getRule, table)) {
      const attributes = [...readAttributes(bytes, headerLength, bytes.length)];
      if (textOf(bytes, attributes, ruleAttributes.table) !== table) continue;
      const hash = hashes.get(textOf(bytes, attributes, ruleAttributes.chain));
      for (const { type, start, end } of attributes) {
        if (type === ruleAttributes.expressions) hash?.update(bytes.subarray(start, end));
      }
    }
    const chains = [...hashes].map(([name, hash]) => ({ name, digest: hash.digest('hex') }));
    return { sleeps: (flags & dormant) !== 0, chains };
  }

  #tableFlags(table: string): number | undefined {
    const isAbsent = (errno: number): boolean => errno === constants.errno.ENOENT;
    const read = numberOf(tableAttributes.flags);
    return this.#asker.get(requests.getTable, named(tableAttributes.name, table), { read, isAbsent });
  }

  /** Items without their message headers. */
  #dump(type: number, table: string): readonly Uint8Array[] {
    return this.#asker.dump(type, named(chainAttributes.table, table), (bytes, { start, end }) =>
      bytes.slice(start, end),
    );
  }
}

const header: WriteBody = (writer) => writer.netfilterHeader(familyInet, 0);

function named(attribute: number, name: string): WriteBody {
  return (writer) => {
    header(writer);
    writer.attributeText(attribute, name);
  };
}

/** Reads a number; 0 if the attribute is absent. */
function numberOf(attribute: number): (bytes: Uint8Array, message: NetlinkMessage) => number {
  return (bytes, { start, end }) => {
    const found = [...readAttributes(bytes, start + headerLength, end)].find(({ type }) => type === attribute);
    return found === undefined ? 0 : readUint32be(bytes, found.start);
  };
}

/** Empty if the attribute is absent. */
function textOf(bytes: Uint8Array, attributes: readonly NetlinkAttribute[], wanted: number): string {
  const found = attributes.find(({ type }) => type === wanted);
  return found === undefined ? '' : readText(bytes, found.start, found.end);
}
