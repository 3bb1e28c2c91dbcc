import type { ElementId } from './elements.ts';

/** Number of services that have each shared element, as applied to the kernel. */
export class SharedClaims {
  readonly #counts = new Map<ElementId, number>();

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
