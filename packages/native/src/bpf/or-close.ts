import { closeSync } from 'node:fs';

/** What `use` makes of a descriptor that is taken over: closed when that throws. */
export function orClose<Result>(fd: number, use: () => Result): Result {
  try {
    return use();
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
