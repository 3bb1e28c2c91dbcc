import type { CommandResult } from '@switchyard/host';
import { NftError, type NftRefusal } from '../nft-error.ts';

/** nft ran and refused; `next` says what that means for the caller. */
export function refusedByNft(attempt: string, result: CommandResult, next: string): NftError {
  const said = essence(result.stderr);
  const message = `${attempt}: nft exited with ${result.exitCode} and said: ${said}; ${next}`;
  return new NftError(message, { refusal: refusalOf(result.stderr) });
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
