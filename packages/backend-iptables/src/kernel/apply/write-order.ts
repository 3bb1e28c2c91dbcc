import { assertNever } from '@switchyard/core';
import type { TableName } from '../../render/chains.ts';
import type { Change } from './change.ts';

/** One stretch of a restore. Stretches of one table that follow each other are one transaction of the kernel. */
export interface WriteStep {
  readonly table: TableName;
  readonly what: 'chains' | 'entries' | 'jumps' | 'unlink' | 'remove';
  /** Why it stands where it stands. */
  readonly why: string;
}

/**
 * The order in which changes are written, whoever they are of. A new connection passes nat first and filter afterwards, and what
 * nat has translated meets no rule of filter that rejects or drops: those ask for the address before translation.
 */
export const writeOrder: readonly WriteStep[] = [
  {
    table: 'mangle',
    what: 'chains',
    why: 'no packet passes these: whoever cleans up must know whose the others are, also when those were refused',
  },
  { table: 'filter', what: 'chains', why: 'rules can lead to chains only that exist' },
  {
    table: 'filter',
    what: 'entries',
    why: 'what rejects and drops meets only what nat does not translate: it may come early, and late would leave a hole',
  },
  {
    table: 'filter',
    what: 'jumps',
    why: 'KUBE-FORWARD accepts before the first connection is translated; rejects are right before nat is',
  },
  { table: 'nat', what: 'chains', why: 'endpoints stand before what chooses among them; nothing leads to them yet' },
  { table: 'nat', what: 'entries', why: 'now complete chains stand behind them: a Service becomes visible' },
  {
    table: 'nat',
    what: 'jumps',
    why: 'on a fresh node this makes all Services visible at once, masquerading with them',
  },
  { table: 'nat', what: 'unlink', why: 'the new entries are first in their chains, so that these are asked no more' },
  { table: 'nat', what: 'remove', why: 'the kernel deletes only what nothing leads to' },
  { table: 'filter', what: 'unlink', why: 'a reject goes only when nat translates what it had met' },
  { table: 'filter', what: 'remove', why: 'nothing leads to them now' },
  { table: 'mangle', what: 'remove', why: 'no packet passes these' },
];

/** The name of a step: `nat entries`. */
export type StepKey = `${TableName} ${WriteStep['what']}`;

/** In which step a change is written. */
export function stepOf(change: Change): StepKey {
  const { table } = change;
  switch (change.kind) {
    case 'chain':
    case 'list':
      return `${table} chains`;
    case 'insert':
    case 'append':
      return change.isJump ? `${table} jumps` : `${table} entries`;
    case 'move':
    case 'tail':
      return `${table} entries`;
    case 'delete':
      return `${table} unlink`;
    case 'remove':
      return `${table} remove`;
    default:
      return assertNever(change);
  }
}
