import { InvariantError, ipToBytes, parseIp } from '@switchyard/core';
import type { MessageWriter } from '@switchyard/native';
import { protocolNumbers } from '../../render/names.ts';
import {
  type Field,
  type ObjectDescription,
  priorityMask,
  randomModulus,
  type RejectKind,
  type Rule,
  type Statement,
  type VerdictElement,
} from '../../render/rules/model.ts';
import {
  accept,
  changeElement,
  compare,
  destinationNat,
  drop,
  goTo,
  isInSet,
  keepBits,
  loadAddressType,
  loadConntrack,
  loadMeta,
  loadNumber,
  loadPayload,
  loadPriority,
  lookUp,
  masquerade,
  metaKey,
  random,
  type Register,
  registerAt,
  reject,
  requireFamily,
  setMeta,
  setPriority,
  toNetworkOrder,
} from '@switchyard/netfilter/expressions';
import { familyOf, headerField, paddedLength, partLayout } from './part-types.ts';

/** A set within a rule. The kernel gives it a name, such as `__set0`. */
export interface AnonymousSet {
  readonly name: '__set%d' | '__map%d';
  /** Type of its keys. */
  readonly part: Field;
  readonly content:
    | { readonly kind: 'protocols'; readonly elements: readonly number[] }
    | { readonly kind: 'verdicts'; readonly elements: readonly VerdictElement[] };
}

export function anonymousSetsOf(rule: Rule): readonly AnonymousSet[] {
  return rule.flatMap((statement): readonly AnonymousSet[] => {
    if (statement.kind === 'isProtocol' && statement.protocols.length > 1) {
      const elements = statement.protocols.map(numberOfProtocol);
      return [{ name: '__set%d', part: 'meta l4proto', content: { kind: 'protocols', elements } }];
    }
    if (statement.kind !== 'vmap' || typeof statement.map === 'string') return [];
    return [{ name: '__map%d', part: 'meta priority', content: { kind: 'verdicts', elements: statement.map } }];
  });
}

function numberOfProtocol(name: string): number {
  const number = protocolNumbers[name];
  if (number === undefined) throw new InvariantError(`no rule can match the protocol ${JSON.stringify(name)}`);
  return number;
}

/** Where every value begins: 16 bytes, or four times four. */
const first: Register = registerAt(0);
const verdict: Register = 0;
/** RTN_LOCAL. */
const localAddress = 2;
/** `NFT_CT_...` and bits of them: IP_CT_NEW, the invalid state, IPS_DST_NAT. */
const conntrack = { state: 0, status: 2, invalid: 0x1, new: 0x8, dnat: 0x20 } as const;

/** NFT_REJECT_ICMP_UNREACH, NFT_REJECT_TCP_RST, NFT_REJECT_ICMPX_UNREACH; and the code of each. */
const rejects: Readonly<
  Record<RejectKind, { readonly type: number; readonly code: number; readonly isIpv6?: boolean }>
> = {
  'tcp reset': { type: 1, code: 0 },
  any: { type: 2, code: 1 },
  'icmp port-unreachable': { type: 0, code: 3, isIpv6: false },
  'icmpv6 port-unreachable': { type: 0, code: 4, isIpv6: true },
};

/** Four bytes in the machine's order. */
function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value >>> 0, true);
  return bytes;
}

const noBits = word(0);

/** Writes the expressions of rules: the same as nft 1.0.6 makes of their text, so that `nft list` prints them as that. */
export class RuleEncoder {
  readonly #writer: MessageWriter;
  /** Names of the sets whose keys have several parts and a range. */
  readonly #ranges: ReadonlySet<string>;
  /** Whether this rule has matched the packet's family already. */
  #hasFamily = false;
  #ids: number[] = [];

  constructor(writer: MessageWriter, objects: readonly ObjectDescription[]) {
    this.#writer = writer;
    const ranges = objects.filter(({ key, flags }) => key.length > 1 && flags?.includes('interval') === true);
    this.#ranges = new Set(ranges.map(({ name }) => name));
  }

  /** `ids`: the numbers of the rule's anonymous sets, in order. */
  write(rule: Rule, ids: readonly number[]): void {
    this.#hasFamily = false;
    this.#ids = [...ids];
    for (const statement of rule) {
      const isIpv6 = statement.kind === 'reject' ? rejects[statement.with].isIpv6 : undefined;
      if (isIpv6 !== undefined) this.#requireFamily(isIpv6); // nft puts the family match of the last statement first
    }
    for (const statement of rule) this.#statement(statement);
  }

  #statement(statement: Statement): void {
    const writer = this.#writer;
    switch (statement.kind) {
      case 'isFamily':
        return requireFamily(writer, first, statement.family === 'ipv6', statement.isNegated);
      case 'isProtocol':
        loadMeta(writer, metaKey.l4proto, first);
        if (statement.protocols.length > 1) return isInSet(writer, this.#anonymous('__set%d'), first);
        return compare(writer, first, Uint8Array.from(statement.protocols, numberOfProtocol));
      case 'isLocal':
        loadAddressType(writer, statement.address, first);
        return compare(writer, first, word(localAddress));
      case 'isDnat':
        loadConntrack(writer, conntrack.status, first);
        return this.#hasBits(conntrack.dnat, statement.isNegated);
      case 'isState':
        loadConntrack(writer, conntrack.state, first);
        return this.#hasBits(conntrack[statement.state]);
      case 'hasBits':
        loadMeta(writer, metaKey[statement.of], first);
        return this.#hasBits(statement.mask, statement.isNegated);
      case 'inSet':
        this.#load(statement.fields, this.#ranges.has(statement.set));
        return isInSet(writer, statement.set, first, statement.isNegated);
      case 'isNot':
        return this.#isNot(statement.field, statement.cidr);
      default:
        return this.#action(statement);
    }
  }

  #action(statement: Action): void {
    const writer = this.#writer;
    switch (statement.kind) {
      case 'setPriority':
        loadNumber(writer, statement.value, first);
        return setPriority(writer, first);
      case 'maskPriority':
        loadPriority(writer, first);
        keepBits(writer, first, statement.mask);
        return setPriority(writer, first);
      case 'lookUpPriority':
        this.#load(statement.fields);
        lookUp(writer, statement.map, first, first);
        return setPriority(writer, first);
      case 'setMark':
        return this.#setMark(statement);
      case 'vmap':
        loadPriority(writer, first);
        keepBits(writer, first, statement.mask);
        return lookUp(
          writer,
          typeof statement.map === 'string' ? statement.map : this.#anonymous('__map%d'),
          first,
          verdict,
        );
      case 'dnat':
        return this.#dnat(statement);
      case 'count':
        this.#load(statement.fields);
        return changeElement(writer, { operation: 'update', set: statement.set, key: first });
      case 'goto':
        return goTo(writer, statement.chain);
      case 'reject':
        return reject(writer, rejects[statement.with].type, rejects[statement.with].code);
      case 'drop':
        return drop(writer);
      case 'accept':
        return accept(writer);
      case 'masquerade':
        return masquerade(writer);
    }
  }

  /** Loads fields side by side, as the parts of a key. */
  #load(fields: readonly Field[], isRange = false): void {
    const isIpv6 = fields.map(familyOf).find((family) => family !== undefined);
    if (isIpv6 !== undefined) this.#requireFamily(isIpv6 === 'ipv6');
    let words = 0;
    for (const field of fields) {
      const length = this.#loadField(field, registerAt(words));
      if (isRange && field === 'meta l4proto') toNetworkOrder(this.#writer, registerAt(words), length);
      words += paddedLength({ length }) / 4;
    }
  }

  #loadField(field: Field, to: Register): number {
    const writer = this.#writer;
    const mask = priorityMask(field);
    const modulus = randomModulus(field);
    const header = headerField(field);
    if (mask !== undefined) {
      loadPriority(writer, to);
      keepBits(writer, to, mask);
      return 4;
    }
    const { length, expression } = partLayout(field);
    if (modulus !== undefined) random(writer, to, modulus);
    else if (header !== undefined) loadPayload(writer, header, to);
    else if (expression?.kind === 'meta') loadMeta(writer, expression.key, to);
    else throw new InvariantError(`no rule can load ${field}`);
    return length;
  }

  #isNot(field: Field, cidr: string): void {
    const [address = '', prefix] = cidr.split('/');
    const bytes = ipToBytes(parseIp(address));
    const length = prefix === undefined ? bytes.length : Number(prefix) / 8;
    const header = headerField(field);
    if (header === undefined || !Number.isInteger(length)) {
      throw new InvariantError(`no rule can compare ${field} with ${cidr}: only whole bytes of a header`);
    }
    this.#requireFamily(familyOf(field) === 'ipv6');
    loadPayload(this.#writer, { ...header, length }, first);
    compare(this.#writer, first, bytes.subarray(0, length), true);
  }

  #hasBits(mask: number, isNegated = false): void {
    keepBits(this.#writer, first, mask);
    compare(this.#writer, first, noBits, !isNegated);
  }

  #setMark({ operation, value }: Extract<Statement, { kind: 'setMark' }>): void {
    loadMeta(this.#writer, metaKey.mark, first);
    if (operation === 'and') keepBits(this.#writer, first, value);
    else keepBits(this.#writer, first, operation === 'or' ? ~value : 0xffffffff, value);
    setMeta(this.#writer, metaKey.mark, first);
  }

  #dnat({ ip, fields, map }: Extract<Statement, { kind: 'dnat' }>): void {
    this.#load(fields);
    lookUp(this.#writer, map, first, first);
    const isIpv6 = ip === 'ip6';
    destinationNat(this.#writer, { address: first, port: registerAt(isIpv6 ? 4 : 1), isIpv6 });
  }

  #requireFamily(isIpv6: boolean): void {
    if (!this.#hasFamily) requireFamily(this.#writer, first, isIpv6);
    this.#hasFamily = true;
  }

  #anonymous(name: AnonymousSet['name']): { readonly name: string; readonly id: number } {
    const id = this.#ids.shift();
    if (id === undefined) throw new InvariantError(`a rule refers to a set ${name} that was not made`);
    return { name, id };
  }
}

type Action = Exclude<Statement, { kind: `is${string}` | 'inSet' | 'hasBits' }>;
