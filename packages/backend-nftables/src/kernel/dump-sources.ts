import { isRestricted } from '../render/elements.ts';

/** Allowed sources by the frontend they belong to, from the keys of `fw-allow`. */
export function sourcesByPlace(keys: Iterable<string>): ReadonlyMap<string, readonly string[]> {
  const sources = new Map<string, string[]>();
  for (const key of keys) {
    const at = key.lastIndexOf(' . ');
    const place = key.slice(0, at);
    sources.set(place, [...(sources.get(place) ?? []), key.slice(at + 3)]);
  }
  return sources;
}

/** What a dump says of a frontend's sources; nothing where everybody may use it. */
export function sourceLines(ranges: readonly string[] = [], frontendClass: number): readonly string[] {
  const texts = [...ranges].sort();
  if (isRestricted(frontendClass)) return [`sources: ${texts.join(', ') || 'none'}`];
  return texts.length === 0 ? [] : [`sources: ${texts.join(', ')}, without effect`];
}
