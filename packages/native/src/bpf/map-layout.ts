import { UsageError } from '@switchyard/core';
import type { BpfMapShape } from './types.ts';
import { readFileSync } from 'node:fs';

/** A length rounded up to eight bytes: how arrays keep their values, and per-CPU maps those of one CPU. */
export function roundUp8(length: number): number {
  return (length + 7) & ~7;
}

/** Whether elements are found by their index and are always there. */
export function isArray({ type }: BpfMapShape): boolean {
  return type === 'array' || type === 'perCpuArray';
}

/** Bytes of a value in a system call, with `cpus` CPUs. */
export function transferredSize({ type, valueSize }: BpfMapShape, cpus: number): number {
  return type === 'perCpuArray' ? roundUp8(valueSize) * cpus : valueSize;
}

/** Throws `UsageError` where a caller's bytes are not of the length that the map has. */
export function checkLength(
  name: string,
  what: 'key' | 'value' | 'keys' | 'values',
  sizes: { readonly has: number; readonly needs: number },
): void {
  if (sizes.has === sizes.needs) return;
  throw new UsageError('bpf.length', `the BPF map ${name} takes ${sizes.needs} bytes as ${what}, not ${sizes.has}`);
}

/** Throws `UsageError` for a map whose values are not memory. */
export function checkMmapable(shape: BpfMapShape): void {
  if (shape.mmapable === true && shape.type === 'array') return;
  throw new UsageError('bpf.mmap', `the BPF map ${shape.name} is no mmapable array: its values are not memory`);
}

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
