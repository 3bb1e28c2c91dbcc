import { type MessageWriter, NLM_F } from '@switchyard/native';
import { chainName } from '../../render/class-chains.ts';
import type { Change } from '../../render/elements.ts';
import { idMask } from '../../render/elements.ts';
import type { FamilySuffix } from '../../render/names.ts';
import { affinityRules } from './affinity-rules.ts';
import { NFT_MSG, NFTA } from './constants.ts';
import type { BatchTarget } from './encode-batch.ts';
import {
  destinationNat,
  goTo,
  gotoVerdict,
  hostNumber,
  keepBits,
  loadPriority,
  lookUp,
  random,
  setPriority,
} from './expressions.ts';

type ClassChange = Extract<Change, { readonly kind: 'class' }>;

/** Writes the expressions of one rule. */
export type WriteRule = (writer: MessageWriter) => void;

/** A load-balancing chain and the element of `lb4-classes` that leads to it. */
export function writeClass(target: BatchTarget, change: ClassChange): void {
  const { writer, table, begin } = target;
  const chain = chainName(change.chain, change.suffix);
  // A chain that is there must not get its rules a second time.
  begin(NFT_MSG.NEWCHAIN, NLM_F.CREATE | NLM_F.EXCL, chain);
  writer.attributeText(NFTA.CHAIN.TABLE, table);
  writer.attributeText(NFTA.CHAIN.NAME, chain);
  writer.endMessage();
  for (const write of rulesOf(change)) {
    begin(NFT_MSG.NEWRULE, NLM_F.CREATE | NLM_F.APPEND, chain);
    writer.attributeText(NFTA.RULE.TABLE, table);
    writer.attributeText(NFTA.RULE.CHAIN, chain);
    const list = writer.beginNested(NFTA.RULE.EXPRESSIONS);
    write(writer);
    writer.endAttribute(list);
    writer.endMessage();
  }
  writeElement(target, change, chain);
}

function rulesOf({ chain, suffix }: ClassChange): readonly WriteRule[] {
  if (chain.kind === 'lb') return loadBalancingRules(chain.slots, suffix);
  return affinityRules({ ...chain, suffix });
}

/**
 * What skeleton.ts has for the preloaded classes, in the kernel's own words: nft cannot add such a rule to a loaded
 * table, because it evaluates the stored types again and finds a conflict. The protocol match, which only nft asks
 * for, is left out: whoever comes here matched a port before. Slot 0, for a packet whose slot has just gone, is
 * left to the class of one slot, because each rule that looks up `endpoints4` makes writes to it slower.
 */
function loadBalancingRules(slots: number, suffix: FamilySuffix): readonly WriteRule[] {
  const key = 8; // four bytes of priority, then four of random number; the endpoint takes their place
  const port = suffix === '4' ? 9 : 12; // behind the address
  return [
    (writer) => {
      loadPriority(writer, key);
      keepBits(writer, key, idMask);
      setPriority(writer, key);
      loadPriority(writer, key); // it is there already, but nft prints the rule as it would write it
      random(writer, key + 1, slots);
      lookUp(writer, `endpoints${suffix}`, key, key);
      destinationNat(writer, { address: key, port, isIpv6: suffix === '6' });
    },
    (writer) => goTo(writer, chainName({ kind: 'lb', slots: 1 }, suffix)),
  ];
}

function writeElement(
  { writer, table, begin }: BatchTarget,
  { handleClass, suffix }: ClassChange,
  chain: string,
): void {
  const object = `lb${suffix}-classes`;
  begin(NFT_MSG.NEWSETELEM, NLM_F.CREATE, object);
  writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
  writer.attributeText(NFTA.ELEM_LIST.SET, object);
  const list = writer.beginNested(NFTA.ELEM_LIST.ELEMENTS);
  const element = writer.beginNested(NFTA.LIST.ELEM);
  hostNumber(writer, NFTA.ELEM.KEY, (handleClass << 20) >>> 0);
  const data = writer.beginNested(NFTA.ELEM.DATA);
  gotoVerdict(writer, chain);
  for (const open of [data, element, list]) writer.endAttribute(open);
  writer.endMessage();
}
