import type { MessageWriter } from '@switchyard/native';
import { idMask } from '../../render/elements.ts';
import { affinityMap, type FamilySuffix } from '../../render/names.ts';
import type { WriteRule } from './encode-class.ts';
import {
  deleteElement,
  destinationNat,
  drop,
  keepBits,
  loadPriority,
  loadSource,
  lookUp,
  random,
  requireFamily,
  setPriority,
  updateElement,
} from './expressions.ts';

/** Number of places that a class picks from, and the time for which a client keeps its endpoint. */
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
    updateElement(writer, { set: this.#name(affinityMap), key: this.#client, data: this.#found, timeout });
  }

  /** The kernel wants data with every access to a map; it does not look at it. */
  unpin(writer: MessageWriter): void {
    deleteElement(writer, { set: this.#name(affinityMap), key: this.#client, data: this.#set });
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
