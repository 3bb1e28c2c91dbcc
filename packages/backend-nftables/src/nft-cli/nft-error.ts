import { HostError } from '@switchyard/core';
import type { CommandResult } from '@switchyard/host';

/**
 * What kind of refusal it was. `exists` and `missing`: the kernel holds something else than we thought.
 * `permission`: nothing will work. `other`: the text was refused (syntax, feature, limit).
 */
export type NftRefusal = 'permission' | 'exists' | 'missing' | 'other';

/** nft ran and refused. The transaction had no effect. */
export class NftError extends HostError {
  override readonly name = 'NftError';
  readonly refusal: NftRefusal;
  readonly exitCode: number;

  constructor(attempt: string, result: CommandResult, next: string) {
    const refusal = refusalOf(result.stderr);
    const said = essence(result.stderr);
    super(`nftables.${refusal}`, `${attempt}: nft exited with ${result.exitCode} and said: ${said}; ${next}`);
    this.refusal = refusal;
    this.exitCode = result.exitCode;
  }
}

/**
 * Matching text is safe: the runner sets LC_ALL=C and these are strerror's texts, which nft repeats for the
 * kernel's errno.
 */
function refusalOf(stderr: string): NftRefusal {
  if (/Operation not permitted|Permission denied/.test(stderr)) return 'permission';
  if (stderr.includes('File exists')) return 'exists';
  if (stderr.includes('No such file or directory')) return 'missing';
  return 'other';
}

/**
 * nft 1.0.6 prints a complaint about `typeof` maps with every listing, also when all is well; and it
 * repeats the whole offending line, which may have hundreds of elements.
 */
function essence(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.trim());
  const errors = lines.filter((line) => line.includes('Error: ') && !line.includes('conflicting protocols'));
  const shown = errors.length > 0 ? errors : lines.filter((line) => line !== '');
  return shown.length === 0 ? 'nothing' : shown.slice(0, 3).join(' | ').slice(0, 500);
}
