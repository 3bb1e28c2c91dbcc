import type { FamilySuffix } from './names.ts';

export type ClassChain =
  /** Picks one of `slots` slots at random. */
  | { readonly kind: 'lb'; readonly slots: number }
  /** The same, and sends a client where it was sent before for `timeoutSeconds` after its last connection. */
  | { readonly kind: 'affinity'; readonly slots: number; readonly timeoutSeconds: number };

/** The chain's name in the kernel: `lb4-N`, or `aff4-N-T` with T in seconds. */
export function chainName(chain: ClassChain, suffix: FamilySuffix): string {
  if (chain.kind === 'lb') return `lb${suffix}-${chain.slots}`;
  return `aff${suffix}-${chain.slots}-${chain.timeoutSeconds}`;
}

/** The chain a name stands for; undefined when it is none of this family's. */
export function parseChainName(name: string, suffix: FamilySuffix): ClassChain | undefined {
  const lb = /^lb([46])-(\d+)$/.exec(name);
  if (lb?.[1] === suffix) return { kind: 'lb', slots: Number(lb[2]) };
  const affinity = /^aff([46])-(\d+)-(\d+)$/.exec(name);
  if (affinity?.[1] !== suffix) return undefined;
  return { kind: 'affinity', slots: Number(affinity[2]), timeoutSeconds: Number(affinity[3]) };
}

/** Which number a class has; the same one as long as the table lives. */
export interface ClassNumbers {
  classOf(chain: ClassChain): number;
}
