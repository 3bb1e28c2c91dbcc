import { type IpAddress, ipFromBytes, ipToBytes } from '@switchyard/core';

// Maps are read and written as 32-bit words of a little-endian machine, the only kind that this backend supports: the lowest byte of a
// word is the first in memory.

/** Returns the bytes as words: a view, or a copy if they are not aligned. An incomplete last word is left out. */
export function wordsOf(bytes: Uint8Array): Uint32Array {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength >>> 2);
}

/** Returns a view of the words as bytes. */
export function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/** The third word of an IPv4 address: `::ffff:` before its last four bytes. */
export const mappedWord = 0xffff0000;

/** Writes the 16 bytes of an address to four words. IPv4 costs no allocation: a large table has 100,000 of them. */
export function putAddress(words: Uint32Array, at: number, address: IpAddress): void {
  const word = ipv4Word(address);
  if (word !== undefined) {
    words[at] = 0;
    words[at + 1] = 0;
    words[at + 2] = mappedWord;
    words[at + 3] = word;
    return;
  }
  const bytes = ipToBytes(address);
  for (let word = 0; word < 4; word++) {
    const from = word * 4;
    words[at + word] =
      (bytes[from] ?? 0) |
      ((bytes[from + 1] ?? 0) << 8) |
      ((bytes[from + 2] ?? 0) << 16) |
      ((bytes[from + 3] ?? 0) << 24);
  }
}

/** The address in four words, as text; an IPv4 address in its own form. */
export function addressAt(words: Uint32Array, at: number): IpAddress {
  const bytes = new Uint8Array(words.buffer, words.byteOffset + at * 4, 16);
  const isIpv4 = words[at] === 0 && words[at + 1] === 0 && words[at + 2] === mappedWord;
  return ipFromBytes(isIpv4 ? bytes.subarray(12) : bytes);
}

/** A port in network order, as the lower half of a word. */
export function portBits(port: number): number {
  return ((port & 0xff) << 8) | (port >>> 8);
}

/** The address's four bytes, the first one lowest; undefined for an IPv6 address. */
function ipv4Word(address: IpAddress): number | undefined {
  let word = 0;
  let octet = 0;
  let shift = 0;
  for (let index = 0; index < address.length; index++) {
    const code = address.charCodeAt(index);
    if (code === 0x2e) {
      word |= octet << shift;
      shift += 8;
      octet = 0;
    } else if (code > 0x39) return undefined; // a letter or a colon
    else octet = octet * 10 + code - 0x30;
  }
  return word | (octet << shift);
}
