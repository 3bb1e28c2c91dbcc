import type { MessageWriter } from '@switchyard/native';
import { type Change, idMask } from '../../render/elements.ts';
import { affinityMap, type FamilySuffix } from '../../render/names.ts';
import {
  changeElement,
  destinationNat,
  drop,
  goTo,
  keepBits,
  loadPriority,
  loadSource,
  lookUp,
  random,
  requireFamily,
  setPriority,
} from '@switchyard/netfilter/expressions';
import { chainName } from '../../render/class-chains.ts';
import type { BatchTarget } from './encode-batch.ts';
import { writeChainHead } from './encode-table.ts';
import { addElements, addRule, writeVerdictElement } from './write-objects.ts';

export interface AffinityClass {
  readonly slots: number;
  readonly timeoutSeconds: number;
  readonly suffix: FamilySuffix;
}

/**
 * The rules of an affinity class. Packets arrive with the endpoint set in `meta priority`. A *pin* is an element of
 * `affinity4`: client and set, leading to the number of an endpoint in that set.
 *
 * 1. A pin with an existing endpoint: renew the pin and send the packet.
 * 2. Else the pin, if there is one, leads to a removed endpoint: delete it, because `update` does not change data.
 * 3. Pick, pin, and look the pin up again: another packet of this client may have been first.
 * 4. The same with place 0, the last one to be removed: a commit may just have removed the picked place.
 * 5. and 6. The same without a pin: the map is full.
 *
 * Every value that a look-up found goes through `meta priority` before it is used: where a register came straight out of
 * a look-up, `nft list` of 1.0.6 ends with an assertion when that register is a key or data.
 */
export function affinityRules(which: AffinityClass): readonly WriteRule[] {
  const rule = new AffinityRule(which);
  return [
    (writer) => {
      rule.start(writer);
      rule.findPin(writer);
      rule.findEndpoint(writer);
      rule.pin(writer);
      rule.send(writer);
    },
    (writer) => {
      rule.start(writer);
      rule.unpin(writer);
    },
    ...[which.slots, 1].map((slots): WriteRule => (writer) => {
      rule.start(writer);
      rule.pick(writer, slots);
      rule.pin(writer);
      rule.findPin(writer);
      rule.findEndpoint(writer);
      rule.send(writer);
    }),
    ...[which.slots, 1].map((slots): WriteRule => (writer) => {
      rule.start(writer);
      rule.pick(writer, slots);
      rule.findEndpoint(writer);
      rule.send(writer);
    }),
    drop,
  ];
}

/** Parts of the rules, and where each value stands: client and set side by side, since together they are a key. */
class AffinityRule {
  readonly #which: AffinityClass;
  readonly #client = 8;
  readonly #set: number;
  readonly #random: number;
  readonly #found: number;
  readonly #endpoint: number;
  readonly #port: number;

  constructor(which: AffinityClass) {
    const addressLength = which.suffix === '4' ? 1 : 4;
    this.#which = which;
    this.#set = this.#client + addressLength;
    this.#random = this.#set + 1;
    this.#found = this.#set + 2;
    this.#endpoint = this.#set + 3;
    this.#port = this.#endpoint + addressLength;
  }

  /** Restores the set in `meta priority`, which an earlier rule may have overwritten, then loads client and set. */
  start(writer: MessageWriter): void {
    loadPriority(writer, this.#client);
    keepBits(writer, this.#client, idMask);
    setPriority(writer, this.#client);
    requireFamily(writer, this.#client, this.#isIpv6); // always true; nft needs it to print the address by its name
    loadSource(writer, this.#client, this.#isIpv6);
    loadPriority(writer, this.#set);
  }

  findPin(writer: MessageWriter): void {
    lookUp(writer, this.#name(affinityMap), this.#client, this.#found);
    this.#passPriority(writer);
  }

  pick(writer: MessageWriter, slots: number): void {
    random(writer, this.#random, slots);
    lookUp(writer, this.#name('aff-slots'), this.#set, this.#found);
    this.#passPriority(writer);
  }

  findEndpoint(writer: MessageWriter): void {
    lookUp(writer, this.#name('aff-endpoints'), this.#found, this.#endpoint);
  }

  pin(writer: MessageWriter): void {
    const timeout = this.#which.timeoutSeconds * 1000;
    const set = this.#name(affinityMap);
    changeElement(writer, { operation: 'update', set, key: this.#client, data: this.#found, timeout });
  }

  /** The kernel wants data with every access to a map; it does not look at it. */
  unpin(writer: MessageWriter): void {
    const set = this.#name(affinityMap);
    changeElement(writer, { operation: 'delete', set, key: this.#client, data: this.#set });
  }

  send(writer: MessageWriter): void {
    destinationNat(writer, { address: this.#endpoint, port: this.#port, isIpv6: this.#isIpv6 });
  }

  #passPriority(writer: MessageWriter): void {
    setPriority(writer, this.#found);
    loadPriority(writer, this.#found);
  }

  get #isIpv6(): boolean {
    return this.#which.suffix === '6';
  }

  #name(object: string): string {
    return `${object}${this.#which.suffix}`;
  }
}

type ClassChange = Extract<Change, { readonly kind: 'class' }>;

type WriteRule = (writer: MessageWriter) => void;

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
