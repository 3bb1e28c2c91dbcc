import { HostError } from '@switchyard/core';
import { chainName, type ClassChain, parseChainName } from '../render/class-chains.ts';
import { type Change, hex } from '../render/elements.ts';
import type { FamilySuffix } from '../render/names.ts';
import { exactSlotCounts, loadBalancingClass, loadBalancingClasses } from '../render/place-service.ts';

/** Part of every table with our rules, also where a list of the classes lacks some, as it may while its map grows. */
const preloaded: readonly number[] = loadBalancingClasses.map(({ handleClass }) => handleClass);

/** Session affinity has these classes, one per number of slots and timeout, numbered as they come. */
const firstAffinityClass = 0x800;
const lastAffinityClass = 0xfff;

/**
 * The classes of one family: which number each has, and which of them the kernel knows by now.
 *
 * A number is never given to another chain while the table lives, so what was rendered once stays right.
 */
export class ClassPool {
  readonly #suffix: FamilySuffix;
  /** Classes that have their chain in the kernel. */
  readonly #present: Set<number>;
  readonly #affinityClasses = new Map<string, number>();
  readonly #chains = new Map<number, ClassChain>();
  #next = firstAffinityClass;

  constructor(suffix: FamilySuffix) {
    this.#suffix = suffix;
    this.#present = new Set(preloaded);
  }

  /** Replaces the content by the kernel's classes: class to the name of its chain. */
  reset(classes: ReadonlyMap<number, string>): void {
    this.#present.clear();
    for (const handleClass of preloaded) this.#present.add(handleClass);
    this.#affinityClasses.clear();
    this.#chains.clear();
    this.#next = firstAffinityClass;
    for (const [handleClass, name] of classes) {
      const chain = parseChainName(name, this.#suffix);
      this.#present.add(handleClass);
      if (handleClass >= firstAffinityClass) this.#next = Math.max(this.#next, handleClass + 1);
      if (chain === undefined) continue;
      this.#chains.set(handleClass, chain);
      if (chain.kind === 'affinity' && !this.#affinityClasses.has(name)) this.#affinityClasses.set(name, handleClass);
    }
  }

  /** The class of a chain; for affinity a new one where there was none. Throws `HostError` when all are taken. */
  classOf(chain: ClassChain): number {
    if (chain.kind === 'lb') return loadBalancingClass(chain.slots);
    const name = chainName(chain, this.#suffix);
    const known = this.#affinityClasses.get(name);
    if (known !== undefined) return known;
    if (this.#next > lastAffinityClass) throw allTaken(name);
    const handleClass = this.#next++;
    this.#affinityClasses.set(name, handleClass);
    this.#chains.set(handleClass, chain);
    return handleClass;
  }

  /** The change that gives a class its chain; undefined when the kernel has it, or for an unknown class. */
  missing(handleClass: number): ClassChange | undefined {
    if (this.#present.has(handleClass)) return undefined;
    const chain = this.#chains.get(handleClass) ?? lbChain(handleClass);
    return chain && { kind: 'class', suffix: this.#suffix, handleClass, chain };
  }

  /** The chain of this class is in the kernel now. */
  markAdded(handleClass: number): void {
    this.#present.add(handleClass);
  }
}

type ClassChange = Extract<Change, { kind: 'class' }>;

/** Exact classes are their number of slots. */
function lbChain(handleClass: number): ClassChain | undefined {
  return handleClass > 0 && handleClass <= exactSlotCounts ? { kind: 'lb', slots: handleClass } : undefined;
}

function allTaken(name: string): HostError {
  const range = `${hex(firstAffinityClass)} to ${hex(lastAffinityClass)}`;
  return new HostError(
    'nftables.no-free-class',
    `cannot give chain ${name} a class: ${range} are all taken; use fewer different session affinity timeouts, ` +
      'or run the agent with --cleanup once, then again',
  );
}
