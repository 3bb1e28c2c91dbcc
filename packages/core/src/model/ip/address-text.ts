import { wrongArgument } from '../../base/argument.ts';

/** The text of the IPv4 address at `at`. Throws `UsageError` if there are less than 4 bytes. */
export function ipv4Text(bytes: Uint8Array, at: number): string {
  requireBytes('ipv4Text: bytes', { bytes, at, length: 4 });
  return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
}

/**
 * The canonical text (RFC 5952) of the IPv6 address at `at`. An IPv4-mapped address, which Kubernetes
 * refuses, is written in full, so that it never equals a valid address. Throws `UsageError` if there are less than 16 bytes.
 */
export function ipv6Text(bytes: Uint8Array, at: number): string {
  requireBytes('ipv6Text: bytes', { bytes, at, length: 16 });
  const group = (index: number): number => ((bytes[at + index * 2] ?? 0) << 8) | (bytes[at + index * 2 + 1] ?? 0);
  const gap = longestZeros(group);
  if (gap.start === 0 && gap.length === 5 && group(5) === 0xffff) return groupsText(group, 0, 8);
  if (gap.length < 2) return groupsText(group, 0, 8);
  return `${groupsText(group, 0, gap.start)}::${groupsText(group, gap.start + gap.length, 8)}`;
}

interface ByteRange {
  readonly bytes: unknown;
  readonly at: number;
  readonly length: number;
}

function requireBytes(name: string, { bytes, at, length }: ByteRange): void {
  if (bytes instanceof Uint8Array && at >= 0 && bytes.length - at >= length) return;
  throw wrongArgument(name, `a Uint8Array with ${length} bytes from ${at}`, bytes);
}

function groupsText(group: (index: number) => number, from: number, to: number): string {
  let text = '';
  for (let index = from; index < to; index++) text += `${index > from ? ':' : ''}${group(index).toString(16)}`;
  return text;
}

/** The first of the longest rows of groups that are zero. */
function longestZeros(group: (index: number) => number): { readonly start: number; readonly length: number } {
  let best = { start: 0, length: 0 };
  for (let index = 0; index < 8; index++) {
    const start = index;
    while (index < 8 && group(index) === 0) index++;
    if (index - start > best.length) best = { start, length: index - start };
  }
  return best;
}
