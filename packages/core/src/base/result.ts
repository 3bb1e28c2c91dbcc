import { shown } from './argument.ts';
import { InvariantError } from './errors.ts';

/** Ends a `switch` over a closed union: a new member then fails to compile, and a lie at run time throws. */
export function assertNever(value: never): never {
  throw new InvariantError(
    `unexpected member of a closed union: ${typeof value === 'object' ? JSON.stringify(value) : shown(value)}`,
  );
}
