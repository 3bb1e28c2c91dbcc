import type { Drift, DriftKind } from '@switchyard/core/engine';

/** Maximum number of changes listed; further ones are counted. */
const maxListed = 5;

/** From bad to worse. */
const severity: readonly DriftKind[] = ['element', 'set', 'map', 'rule', 'program', 'chain', 'table', 'unknown'];

interface Kind {
  count: number;
  readonly texts: string[];
}

/** Counts foreign changes by kind and remembers the first few in words. */
export class DriftTally {
  readonly #kinds = new Map<DriftKind, Kind>();

  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }

  add(kind: DriftKind, text: string): void {
    const found = this.#of(kind);
    found.count++;
    if (found.texts.length < maxListed) found.texts.push(text);
  }

  merge(other: DriftTally): void {
    for (const [kind, { count, texts }] of other.#kinds) {
      const found = this.#of(kind);
      found.count += count;
      found.texts.push(...texts.slice(0, maxListed - found.texts.length));
    }
  }

  /** The worst kind, and the changes, the worst first. Changes inside a deleted table are left out. */
  summary(): Pick<Drift, 'kind' | 'changes'> {
    const kinds = [...this.#kinds].toSorted(([left], [right]) => severity.indexOf(right) - severity.indexOf(left));
    const [worst = 'unknown'] = kinds[0] ?? [];
    const listed = worst === 'table' ? kinds.slice(0, 1) : kinds;
    const changes = listed.flatMap(([, { texts }]) => texts).slice(0, maxListed);
    const more = listed.reduce((sum, [, { count }]) => sum + count, 0) - changes.length;
    return { kind: worst, changes: more > 0 ? [...changes, `and ${more} more`] : changes };
  }

  #of(kind: DriftKind): Kind {
    let found = this.#kinds.get(kind);
    if (found === undefined) {
      found = { count: 0, texts: [] };
      this.#kinds.set(kind, found);
    }
    return found;
  }
}
