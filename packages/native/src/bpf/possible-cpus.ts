import { readFileSync } from 'node:fs';

let counted: number | undefined;

/** Number of CPUs that this machine may ever have. An element of a per-CPU map has a value for each. */
export function possibleCpus(): number {
  counted ??= countCpus(readFileSync('/sys/devices/system/cpu/possible', 'utf8'));
  return counted;
}

/** The size of a set of CPUs written as `0-3,8`, from zero to the highest: the kernel leaves room for those between. */
export function countCpus(set: string): number {
  return Math.max(...set.trim().split(/[,-]/).map(Number)) + 1;
}
