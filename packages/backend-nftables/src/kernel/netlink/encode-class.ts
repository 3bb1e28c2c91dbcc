import type { MessageWriter } from '@switchyard/native';
import { chainName } from '../../render/class-chains.ts';
import { type Change, idMask } from '../../render/elements.ts';
import type { FamilySuffix } from '../../render/names.ts';
import { affinityRules } from './affinity-rules.ts';
import type { BatchTarget } from './encode-batch.ts';
import { writeChainHead } from './encode-table.ts';
import { destinationNat, goTo, keepBits, loadPriority, lookUp, random, setPriority } from './expressions.ts';
import { addElements, addRule, writeVerdictElement } from './write-objects.ts';

type ClassChange = Extract<Change, { readonly kind: 'class' }>;

/** Writes the expressions of one rule. */
export type WriteRule = (writer: MessageWriter) => void;

/** A load-balancing chain and the element of `lb4-classes` that leads to it. */
export function writeClass(target: BatchTarget, change: ClassChange): void {
  const chain = chainName(change.chain, change.suffix);
  // An existing chain must not get its rules a second time.
  writeChainHead(target, { name: chain }, 'create');
  for (const write of rulesOf(change)) addRule(target, chain, write);
  const key = (change.handleClass << 20) >>> 0;
  addElements(target, `lb${change.suffix}-classes`, (writer) => writeVerdictElement(writer, key, chain));
}

function rulesOf({ chain, suffix }: ClassChange): readonly WriteRule[] {
  if (chain.kind === 'lb') return loadBalancingRules(chain.slots, suffix);
  return affinityRules({ ...chain, suffix });
}

/**
 * Rules as skeleton.ts has them for the preloaded classes, as expressions: nft cannot add such a rule to a loaded
 * table, because it evaluates the stored types again and finds a conflict. The protocol match, which only nft requires,
 * is left out: earlier rules matched a port. Slot 0, for a packet whose slot was just removed, is
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
      loadPriority(writer, key); // already loaded, but nft prints the rule in this form
      random(writer, key + 1, slots);
      lookUp(writer, `endpoints${suffix}`, key, key);
      destinationNat(writer, { address: key, port, isIpv6: suffix === '6' });
    },
    (writer) => goTo(writer, chainName({ kind: 'lb', slots: 1 }, suffix)),
  ];
}
