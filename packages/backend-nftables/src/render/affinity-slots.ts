/** Numbers of endpoints within one set have 12 bits; 0 is none. */
export const maxAffinityEndpoints = 4095;

/** Larger sets have one of `largeSlotCounts` places: each number takes a class per timeout, of 2,048 in all. */
export const exactAffinitySlots = 256;

/** Numbers of a set's endpoints, which clients' pins hold. A freed number is reused only after all others. */
export interface AffinityNumbers {
  /** Endpoint, as `endpointData` has it, to its number: 1 to 4095. */
  readonly byEndpoint: ReadonlyMap<string, number>;
  /** Where the search for the next free number begins. */
  readonly next: number;
}

export const noNumbers: AffinityNumbers = { byEndpoint: new Map(), next: 1 };

/** Returns the numbers of a set that was read back. The next new number lies above the highest of them. */
export function recoverNumbers(byNumber: ReadonlyMap<number, string>): AffinityNumbers {
  const byEndpoint = new Map<string, number>();
  let highest = 0;
  for (const [number, endpoint] of byNumber) {
    highest = Math.max(highest, number);
    const known = byEndpoint.get(endpoint);
    if (known === undefined || number < known) byEndpoint.set(endpoint, number);
  }
  return { byEndpoint, next: after(highest) };
}

/** Numbers for exactly these endpoints, of which there are at most `maxAffinityEndpoints`; those that have one keep it. */
export function assignNumbers(previous: AffinityNumbers, endpoints: Iterable<string>): AffinityNumbers {
  const byEndpoint = new Map<string, number>();
  const taken = new Set<number>();
  for (const endpoint of endpoints) {
    const number = previous.byEndpoint.get(endpoint) ?? 0;
    byEndpoint.set(endpoint, number);
    if (number > 0) taken.add(number);
  }
  let { next } = previous;
  for (const [endpoint, number] of byEndpoint) {
    if (number > 0) continue;
    while (taken.has(next)) next = after(next);
    byEndpoint.set(endpoint, next);
    taken.add(next);
    next = after(next);
  }
  return { byEndpoint, next };
}

function after(number: number): number {
  return number >= maxAffinityEndpoints ? 1 : number + 1;
}
