import type { Random } from '@switchyard/core';
import type { PodTemplate } from '@switchyard/core/kubernetes';

/** Kubernetes' alphabet for generated names: no vowels and no characters that look like vowels. */
const safeLetters = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * The `pod-template-hash` of a template: equal templates give equal hashes, in any order of keys. It is
 * not the value the real controller computes (that one hashes a Go dump), only of the same form.
 */
export function templateHash(template: PodTemplate): string {
  const text = canonicalJson(template);
  let hash = 0x811c9dc5; // FNV-1a, 32 bits
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return [...String(hash)].map((digit) => safeLetters[digit.charCodeAt(0) % safeLetters.length]).join('');
}

/** Five letters for the end of a generated name. */
export function nameSuffix(random: Random): string {
  return Array.from({ length: 5 }, () => safeLetters[Math.floor(random() * safeLetters.length)]).join('');
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  entries.sort(([left], [right]) => (left < right ? -1 : 1));
  return `{${entries.map(([key, one]) => `${JSON.stringify(key)}:${canonicalJson(one)}`).join(',')}}`;
}
