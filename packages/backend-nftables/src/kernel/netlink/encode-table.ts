import { type MessageWriter, NLM_F } from '@switchyard/native';
import { NFT_MSG, NFT_SET, NFTA } from '@switchyard/netfilter';
import {
  type ChainDescription,
  chainsOf,
  type HookDescription,
  type ObjectDescription,
  objectsOf,
  type Rule,
  type TableDescription,
  type VerdictElement,
} from '../../render/rules/model.ts';
import { numbersOf, verdictsOf } from '../../render/rules/print.ts';
import type { BatchTarget } from './encode-batch.ts';
import { anonymousSetsOf, type AnonymousSet, RuleEncoder } from './encode-rule.ts';
import { expression, hostNumber } from '@switchyard/netfilter/expressions';
import { paddedLength, type PartLayout, partLayout } from './part-types.ts';
import { setNotes, tableNotes } from './set-notes.ts';
import { addElements, addRule, writeElement, writeKey, writeVerdictElement } from './write-objects.ts';

/** `create` fails if the table exists. `add` adds to it and clears its flags: a dormant table becomes active. */
export type TableMode = 'create' | 'add';

/** Writes the messages that make a table with all that is in it. Chains go first: elements and rules lead to them. */
export function writeTable(target: BatchTarget, table: TableDescription, mode: TableMode): void {
  new TableEncoder(target, table).write(mode);
}

/** Writes the message that makes a table, without anything in it. */
export function writeTableHead({ writer, begin, table }: BatchTarget, comment: string, mode: TableMode): void {
  begin(NFT_MSG.NEWTABLE, NLM_F.CREATE | (mode === 'create' ? NLM_F.EXCL : 0), undefined);
  writer.attributeText(NFTA.TABLE.NAME, table);
  writer.attributeUint32be(NFTA.TABLE.FLAGS, 0);
  writer.attributeBytes(NFTA.TABLE.USERDATA, tableNotes(comment));
  writer.endMessage();
}

/** Writes the message that makes a chain, without its rules. `create` fails if the chain exists. */
export function writeChainHead(
  { writer, begin, table }: BatchTarget,
  { name, hook }: Pick<ChainDescription, 'name' | 'hook'>,
  mode: TableMode = 'add',
): void {
  begin(NFT_MSG.NEWCHAIN, NLM_F.CREATE | (mode === 'create' ? NLM_F.EXCL : 0), name);
  writer.attributeText(NFTA.CHAIN.TABLE, table);
  writer.attributeText(NFTA.CHAIN.NAME, name);
  if (hook !== undefined) writeHook(writer, hook);
  writer.endMessage();
}

const hookNumbers: Readonly<Record<HookDescription['at'], number>> = { prerouting: 0, output: 3, postrouting: 4 };
const acceptPolicy = 1; // NF_ACCEPT

function writeHook(writer: MessageWriter, { type, at, priority, policy }: HookDescription): void {
  writer.attributeText(NFTA.CHAIN.TYPE, type);
  if (policy === 'accept') writer.attributeUint32be(NFTA.CHAIN.POLICY, acceptPolicy);
  writer.nested(NFTA.CHAIN.HOOK, () => {
    writer.attributeUint32be(NFTA.HOOK.NUMBER, hookNumbers[at]);
    writer.attributeUint32be(NFTA.HOOK.PRIORITY, priority >>> 0);
  });
}

interface SetSettings {
  readonly name: string;
  readonly flags: number;
  readonly size?: number | undefined;
  readonly key: readonly PartLayout[];
  readonly data?: readonly PartLayout[] | undefined;
  readonly hasKeyExpression: boolean;
  readonly counter?: boolean | undefined;
  readonly gcIntervalHours?: number | undefined;
  readonly comment?: string | undefined;
}

class TableEncoder {
  readonly #target: BatchTarget;
  readonly #table: TableDescription;
  readonly #rules: RuleEncoder;
  /** Numbers sets within the transaction: rules refer to a set without a name by it. */
  #setId = 0;

  constructor(target: BatchTarget, table: TableDescription) {
    this.#target = target;
    this.#table = table;
    this.#rules = new RuleEncoder(target.writer, objectsOf(table));
  }

  write(mode: TableMode): void {
    writeTableHead(this.#target, this.#table.comment, mode);
    for (const chain of chainsOf(this.#table)) writeChainHead(this.#target, chain);
    for (const object of objectsOf(this.#table)) this.#object(object);
    for (const { name, rules } of chainsOf(this.#table)) {
      for (const rule of rules) this.#rule(name, rule);
    }
    for (const object of objectsOf(this.#table)) this.#verdicts(object.name, verdictsOf(object));
  }

  #object(object: ObjectDescription): void {
    const { name, key, data, size, flags = [], counter, gcIntervalHours, comment } = object;
    const isRanges = key.length > 1 && flags.includes('interval');
    const bits = flags.reduce((sum, flag) => sum | flagBits[flag], 0);
    this.#set({
      name,
      flags: bits | (isRanges ? NFT_SET.CONCAT : 0) | (data === undefined ? 0 : NFT_SET.MAP),
      size,
      key: key.map(partLayout),
      data: data?.map(partLayout),
      hasKeyExpression: true,
      counter,
      gcIntervalHours,
      comment,
    });
    const numbers = numbersOf(object);
    if (numbers.length === 0) return;
    addElements(this.#target, name, (writer) => {
      for (const number of numbers) writeElement(writer, () => hostNumber(writer, NFTA.ELEM.KEY, number));
    });
  }

  #rule(chain: string, rule: Rule): void {
    const ids = anonymousSetsOf(rule).map((set) => this.#anonymousSet(set));
    addRule(this.#target, chain, () => this.#rules.write(rule, ids));
  }

  #anonymousSet({ name, part, content }: AnonymousSet): number {
    const id = this.#set({
      name,
      flags: NFT_SET.ANONYMOUS | NFT_SET.CONSTANT | (content.kind === 'verdicts' ? NFT_SET.MAP : 0),
      size: content.elements.length,
      key: [partLayout(part)],
      data: content.kind === 'verdicts' ? [partLayout('verdict')] : undefined,
      hasKeyExpression: content.kind === 'protocols',
    });
    if (content.kind === 'verdicts') this.#verdicts(name, content.elements, id);
    else {
      const add = (writer: MessageWriter): void => {
        for (const one of content.elements) writeElement(writer, () => writeKey(writer, Uint8Array.of(one)));
      };
      addElements(this.#target, name, add, id);
    }
    return id;
  }

  /** Returns its number. */
  #set(set: SetSettings): number {
    const { writer, begin, table } = this.#target;
    const { key, data } = set;
    const id = ++this.#setId;
    begin(NFT_MSG.NEWSET, NLM_F.CREATE, set.name);
    writer.attributeText(NFTA.SET.TABLE, table);
    writer.attributeText(NFTA.SET.NAME, set.name);
    writer.attributeUint32be(NFTA.SET.FLAGS, set.flags);
    writer.attributeUint32be(NFTA.SET.KEY_TYPE, typeOf(key));
    writer.attributeUint32be(NFTA.SET.KEY_LENGTH, lengthOf(key));
    if (data !== undefined) {
      writer.attributeUint32be(NFTA.SET.DATA_TYPE, typeOf(data));
      writer.attributeUint32be(NFTA.SET.DATA_LENGTH, lengthOf(data));
    }
    writer.attributeUint32be(NFTA.SET.ID, id);
    writeDescription(writer, set);
    if (set.gcIntervalHours !== undefined) {
      writer.attributeUint32be(NFTA.SET.GC_INTERVAL, set.gcIntervalHours * millisPerHour);
    }
    const { hasKeyExpression, comment } = set;
    writer.attributeBytes(NFTA.SET.USERDATA, setNotes({ key, data, hasKeyExpression, comment }));
    if (set.counter === true) expression(writer, 'counter', () => undefined, NFTA.SET.EXPRESSION);
    writer.endMessage();
    return id;
  }

  #verdicts(set: string, elements: readonly VerdictElement[], id?: number): void {
    if (elements.length === 0) return;
    const write = (writer: MessageWriter): void => {
      for (const { key, chain } of elements) writeVerdictElement(writer, key, chain);
    };
    addElements(this.#target, set, write, id);
  }
}

const millisPerHour = 3_600_000;

const flagBits: Readonly<Record<NonNullable<ObjectDescription['flags']>[number], number>> = {
  interval: NFT_SET.INTERVAL,
  timeout: NFT_SET.TIMEOUT,
  dynamic: NFT_SET.EVAL,
};

/** nft's number: six bits for each part of a concatenation. */
function typeOf(parts: readonly PartLayout[]): number {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only.type;
  return parts.reduce((sum, { type }) => (sum << 6) | type, 0);
}

function lengthOf(parts: readonly PartLayout[]): number {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only.length;
  return parts.reduce((sum, part) => sum + paddedLength(part), 0);
}

/** How many elements it holds, and for ranges as parts of a key where each part ends. */
function writeDescription(writer: MessageWriter, { size, flags, key }: SetSettings): void {
  const isRanges = (flags & NFT_SET.CONCAT) !== 0;
  if (size === undefined && !isRanges) return;
  writer.nested(NFTA.SET.DESCRIPTION, () => {
    if (size !== undefined) writer.attributeUint32be(NFTA.SET_DESCRIPTION.SIZE, size);
    if (!isRanges) return;
    writer.nested(NFTA.SET_DESCRIPTION.CONCAT, () => {
      for (const { length } of key) {
        writer.nested(NFTA.LIST.ELEM, () => writer.attributeUint32be(NFTA.SET_FIELD.LENGTH, length));
      }
    });
  });
}
