import { ConfigError } from '@switchyard/core';

/** Throws `ConfigError` unless this process can make a lab. */
export function checkRoot(): void {
  if (process.getuid?.() === 0) return;
  throw new ConfigError('conformance.root', 'the lab makes network namespaces and needs root; run this with sudo');
}
