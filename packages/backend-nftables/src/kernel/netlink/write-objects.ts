import { type MessageWriter, NLM_F } from '@switchyard/native';
import { NFT_MSG, NFTA } from '@switchyard/netfilter';
import type { BatchTarget } from './encode-batch.ts';
import { gotoVerdict, hostNumber } from '@switchyard/netfilter/expressions';

/** Bytes. A list attribute must stay below 64 KiB; elements are far smaller than what is left. */
export const maxListLength = 60_000;

function beginElements({ writer, table, begin }: BatchTarget, type: number, flags: number, set: string): void {
  begin(type, flags, set);
  writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
  writer.attributeText(NFTA.ELEM_LIST.SET, set);
}

export function clearElements(target: BatchTarget, set: string): void {
  beginElements(target, NFT_MSG.DELSETELEM, 0, set); // without a list: all of them
  target.writer.endMessage();
}

/** Writes one message that adds elements; `id` is the number of a set without a name. `write` writes their list. */
export function addElements(
  target: BatchTarget,
  set: string,
  write: (writer: MessageWriter) => void,
  id?: number,
): void {
  const { writer } = target;
  beginElements(target, NFT_MSG.NEWSETELEM, NLM_F.CREATE, set);
  if (id !== undefined) writer.attributeUint32be(NFTA.ELEM_LIST.SET_ID, id);
  writer.nested(NFTA.ELEM_LIST.ELEMENTS, () => write(writer));
  writer.endMessage();
}

export function writeElement(writer: MessageWriter, write: () => void): void {
  writer.nested(NFTA.LIST.ELEM, write);
}

export function writeKey(writer: MessageWriter, value: Uint8Array): void {
  writer.nested(NFTA.ELEM.KEY, () => writer.attributeBytes(NFTA.DATA.VALUE, value));
}

export function writeVerdictElement(writer: MessageWriter, key: number, chain: string): void {
  writeElement(writer, () => {
    hostNumber(writer, NFTA.ELEM.KEY, key);
    writer.nested(NFTA.ELEM.DATA, () => gotoVerdict(writer, chain));
  });
}

/** Writes the message that appends a rule to a chain. `write` writes its expressions. */
export function addRule(
  { writer, table, begin }: BatchTarget,
  chain: string,
  write: (writer: MessageWriter) => void,
): void {
  begin(NFT_MSG.NEWRULE, NLM_F.CREATE | NLM_F.APPEND, chain);
  writer.attributeText(NFTA.RULE.TABLE, table);
  writer.attributeText(NFTA.RULE.CHAIN, chain);
  writer.nested(NFTA.RULE.EXPRESSIONS, () => write(writer));
  writer.endMessage();
}

/** Writes the message that deletes rules of a chain: the one with this handle, or all of them. */
export function deleteRules({ writer, table, begin }: BatchTarget, chain: string, handle?: bigint): void {
  begin(NFT_MSG.DELRULE, 0, chain);
  writer.attributeText(NFTA.RULE.TABLE, table);
  writer.attributeText(NFTA.RULE.CHAIN, chain);
  if (handle !== undefined) writer.attributeUint64be(NFTA.RULE.HANDLE, handle);
  writer.endMessage();
}

export function deleteChain({ writer, table, begin }: BatchTarget, name: string): void {
  begin(NFT_MSG.DELCHAIN, 0, name);
  writer.attributeText(NFTA.CHAIN.TABLE, table);
  writer.attributeText(NFTA.CHAIN.NAME, name);
  writer.endMessage();
}
