import { readFileSync } from 'node:fs';

let counted: number | undefined;

/** How many CPUs this machine may ever have: so many values has an element of a per-CPU map. */
export function possibleCpus(): number {
  counted ??= countCpus(readFileSync('/sys/devices/system/cpu/possible', 'utf8'));
  return counted;
}

/** The size of a set of CPUs written as `0-3,8`, from zero to the highest: the kernel leaves room for those between. */
export function countCpus(set: string): number {
  return Math.max(...set.trim().split(/[,-]/).map(Number)) + 1;
}
