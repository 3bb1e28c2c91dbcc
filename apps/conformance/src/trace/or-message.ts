import { messageOf } from '@switchyard/core';

/** Returns the lines of some work, or one line with its error. */
export async function orMessage(what: string, work: () => Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await work();
  } catch (error) {
    return [`${what}: ${messageOf(error)}`];
  }
}
