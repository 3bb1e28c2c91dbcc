import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from '@switchyard/core';
import type { Mutant } from './mutant.ts';

/** The root of the checkout. */
export const checkout: string = fileURLToPath(new URL('../../../../', import.meta.url));

/** The mutated text of the mutant's file. Throws `UsageError` unless what it looks for occurs exactly once. */
export async function mutatedText(mutant: Mutant): Promise<string> {
  const text = await readFile(join(checkout, mutant.file), 'utf8');
  const [before, after, ...more] = text.split(mutant.find);
  if (before === undefined || after === undefined || more.length > 0) {
    const found = after === undefined ? 'does not occur' : `occurs ${more.length + 1} times`;
    throw new UsageError('mutants.rotten', `mutant ${mutant.id}: in ${mutant.file} ${found}: ${mutant.find}`);
  }
  return `${before}${mutant.replace}${after}`;
}

/** Whether it is in a BPF program. */
export function isBpf({ file }: Mutant): boolean {
  return file.startsWith('packages/backend-ebpf/bpf/');
}
