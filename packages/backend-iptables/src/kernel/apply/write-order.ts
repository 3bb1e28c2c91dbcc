import { assertNever } from '@switchyard/core';
import type { TableName } from '../../render/chains.ts';
import type { Change } from './change.ts';

/** One step of a restore. Adjacent steps of one table form one kernel transaction. */
export interface WriteStep {
  readonly table: TableName;
  readonly what: 'chains' | 'entries' | 'jumps' | 'unlink' | 'remove';
  /** Reason for its place in the order. */
  readonly why: string;
}

/**
 * The order in which the changes of all owners are written. A new connection passes nat before filter. The reject and drop rules of
 * filter match the address before translation, so connections that nat translated do not match them.
 */
export const writeOrder: readonly WriteStep[] = [
  {
    table: 'mangle',
    what: 'chains',
    why: 'no packet passes these; the birthmark must exist even if later steps are refused, or a cleanup misses the chains',
  },
  { table: 'filter', what: 'chains', why: 'a rule can lead only to an existing chain' },
  {
    table: 'filter',
    what: 'entries',
    why: 'rejects and drops match only untranslated packets: early does no harm, late would leave a gap',
  },
  {
    table: 'filter',
    what: 'jumps',
    why: 'KUBE-FORWARD accepts before the first connection is translated; rejects are right before nat is',
  },
  {
    table: 'nat',
    what: 'chains',
    why: 'endpoint chains are written before the chains that choose among them; no rule leads to them yet',
  },
  { table: 'nat', what: 'entries', why: 'the chains behind the entries are complete, so the Service becomes visible' },
  {
    table: 'nat',
    what: 'jumps',
    why: 'on a fresh node this makes all Services visible at once, masquerading with them',
  },
  {
    table: 'nat',
    what: 'unlink',
    why: 'the new entries are first in their chains, so packets no longer reach the old ones',
  },
  { table: 'nat', what: 'remove', why: 'the kernel deletes only chains that no rule leads to' },
  { table: 'filter', what: 'unlink', why: 'a reject is removed only after nat translates the packets that it matched' },
  { table: 'filter', what: 'remove', why: 'no rule leads to them' },
  { table: 'mangle', what: 'remove', why: 'no packet passes these' },
];

/** The name of a step: `nat entries`. */
export type StepKey = `${TableName} ${WriteStep['what']}`;

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
