import { shown } from '../../base/argument.ts';

/** Bytes of the longest name of a network interface. */
export const maxInterfaceNameLength = 15;

/**
 * Returns the fault of a name (or prefix of names) of a network interface, as text for users; undefined for a valid name. Stricter
 * than the kernel: refuses names that need quoting in rule sets.
 */
export function interfaceNameFault(name: string): string | undefined {
  if (typeof name !== 'string') return `it is no text, but ${shown(name)}`;
  if (name === '') return 'it is empty';
  if (Buffer.byteLength(name) > maxInterfaceNameLength) return `it is longer than ${maxInterfaceNameLength} bytes`;
  if (name === '.' || name === '..') return 'no interface can be called so';
  const bad = /[\s/:"\\*\p{Cc}]/u.exec(name)?.[0];
  return bad === undefined ? undefined : `no interface can have ${JSON.stringify(bad)} in its name`;
}
