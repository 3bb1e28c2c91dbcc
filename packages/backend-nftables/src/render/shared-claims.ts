import type { ElementId } from './elements.ts';

/** How many services ask for each element that several may ask for, as the kernel knows it. */
export class SharedClaims {
  readonly #counts = new Map<ElementId, number>();

  /** Services that ask for this element and have it. */
  count(id: ElementId): number {
    return this.#counts.get(id) ?? 0;
  }

  /** `by` services more, or less, have this element. */
  change(id: ElementId, by: number): void {
    const count = this.count(id) + by;
    if (count > 0) this.#counts.set(id, count);
    else this.#counts.delete(id);
  }

  clear(): void {
    this.#counts.clear();
  }
}
