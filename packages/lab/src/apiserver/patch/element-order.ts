import type { Json } from '../json.ts';

type IsSame = (a: Json, b: Json) => boolean;

/**
 * Orders a merged list: elements in the patch come in the patch's order. The others keep their old order, each before the
 * same patched elements as in the old list.
 */
export function orderMerged(
  merged: readonly Json[],
  patchOrder: readonly Json[],
  oldOrder: readonly Json[],
  isSame: IsSame,
): readonly Json[] {
  const named = patchOrder.flatMap((entry) => merged.find((item) => isSame(item, entry)) ?? []);
  const others = merged.filter((item) => !named.includes(item));
  const result: Json[] = [];
  let other = 0;
  for (const item of named) {
    const place = oldOrder.findIndex((old) => isSame(old, item));
    const isBefore = (candidate: Json | undefined): boolean => {
      if (candidate === undefined) return false;
      const candidatePlace = oldOrder.findIndex((old) => isSame(old, candidate));
      return candidatePlace !== -1 && candidatePlace < place;
    };
    while (isBefore(others[other])) {
      result.push(others[other] ?? null);
      other++;
    }
    result.push(item);
  }
  return [...result, ...others.slice(other)];
}
