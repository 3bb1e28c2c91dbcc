/** Finds an address in what is written to a kernel, and no longer one that contains it. Undefined for undefined. */
export function addressPattern(address: string | undefined): RegExp | undefined {
  const pattern = address?.replaceAll('.', '\\.');
  return pattern === undefined ? undefined : new RegExp(`(?<![0-9a-f.:])${pattern}(?![0-9a-f.:])`);
}
