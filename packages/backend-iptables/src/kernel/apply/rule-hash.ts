import type { RuleText } from '../../render/chains.ts';

/** Hash of a chain's rules in their order. 53 bits make a collision within the life of a node unlikely. */
export type ChainHash = number;

export class ChainHasher {
  #high = 0xdeadbeef;
  #low = 0x41c6ce57;

  reset(): void {
    this.#high = 0xdeadbeef;
    this.#low = 0x41c6ce57;
  }

  add(rule: RuleText): void {
    let high = this.#high;
    let low = this.#low;
    for (let at = 0; at < rule.length; at++) {
      const code = rule.charCodeAt(at);
      high = Math.imul(high ^ code, 2654435761);
      low = Math.imul(low ^ code, 1597334677);
    }
    // A newline, which no rule contains: two short rules must not hash like one long rule.
    this.#high = Math.imul(high ^ 10, 2654435761);
    this.#low = Math.imul(low ^ 10, 1597334677);
  }

  get hash(): ChainHash {
    let high = Math.imul(this.#high ^ (this.#high >>> 16), 2246822507);
    high ^= Math.imul(this.#low ^ (this.#low >>> 13), 3266489909);
    let low = Math.imul(this.#low ^ (this.#low >>> 16), 2246822507);
    low ^= Math.imul(this.#high ^ (this.#high >>> 13), 3266489909);
    return 4294967296 * (2097151 & low) + (high >>> 0);
  }
}

export function hashRules(rules: readonly RuleText[]): ChainHash {
  const hasher = new ChainHasher();
  for (const rule of rules) hasher.add(rule);
  return hasher.hash;
}
