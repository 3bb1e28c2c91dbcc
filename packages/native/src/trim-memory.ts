import { loadAddon } from './addon.ts';

/**
 * Gives memory back that C and C++ code has freed and glibc keeps: what the compilers used while a program warmed up is 4 to
 * 10 MB. Takes about a millisecond. Does nothing with another C library. Throws `NativeMissingError`.
 */
export function trimMemory(): void {
  loadAddon().trimMemory();
}
