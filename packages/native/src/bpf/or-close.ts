import { closeSync } from 'node:fs';

/** Returns the result of `use` for a descriptor, and closes the descriptor when `use` throws. */
export function orClose<Result>(fd: number, use: () => Result): Result {
  try {
    return use();
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
