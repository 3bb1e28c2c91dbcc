import { loadAddon } from './addon.ts';

/**
 * Returns memory to the kernel that C and C++ code has freed and glibc keeps: compilers leave 4 to 10 MB while a program warms
 * up. Takes about a millisecond. Does nothing with another C library. Throws `NativeMissingError`.
 */
export function trimMemory(): void {
  loadAddon().trimMemory();
}
