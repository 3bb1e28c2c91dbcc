import type { ChainRule, RuleText } from '../../render/chains.ts';
import { type Change, entryKey } from './change.ts';
import type { KernelState } from './kernel-state.ts';

/** Rules of one owner in shared chains: wanted ones in their order, and present ones. */
export interface EntriesToPlan {
  readonly wanted: readonly ChainRule[];
  readonly had: readonly ChainRule[];
  readonly state: KernelState;
}

/** Plans the changes after which the owner has exactly the wanted entries, in their order within each chain. */
export function planEntries({ wanted, had, state }: EntriesToPlan): readonly Change[] {
  const changes: Change[] = [];
  // Each is inserted as the first of its chain, so the last one is inserted first.
  const seen: { readonly entry: ChainRule; readonly isNew: boolean }[] = [];
  for (let at = wanted.length - 1; at >= 0; at--) {
    const entry = wanted[at];
    if (entry === undefined) continue;
    const { table, chain, rule } = entry;
    if (state.count(table, chain, rule) === 0) {
      changes.push({ kind: 'insert', table, chain, rule, isJump: false });
      seen.push({ entry, isNew: true });
    } else if (seen.some((later) => later.isNew && couldOverlap(later.entry, entry))) {
      changes.push({ kind: 'move', table, chain, rule });
      seen.push({ entry, isNew: true });
    }
  }
  const texts = new Set(wanted.map(entryKey));
  for (const entry of had) {
    const { table, chain, rule } = entry;
    if (texts.has(entryKey(entry)) || state.count(table, chain, rule) === 0) continue;
    changes.push({ kind: 'delete', table, chain, rule });
  }
  return changes;
}

/** Whether one packet can match both rules, so that their order matters: never for different addresses. */
function couldOverlap(a: ChainRule, b: ChainRule): boolean {
  if (a.table !== b.table || a.chain !== b.chain) return false;
  const [left, right] = [hostOf(a.rule), hostOf(b.rule)];
  return left === undefined || right === undefined || left === right;
}

function hostOf(rule: string): string | undefined {
  return /^-d (\S+\/(?:32|128)) /.exec(rule)?.[1];
}

/** Entries whose address and port no wanted entry has. */
export function lostEntries(had: readonly ChainRule[], wanted: readonly ChainRule[]): readonly ChainRule[] {
  const places = new Set(wanted.map(({ rule }) => placeOf(rule)));
  return had.filter(({ rule }) => {
    const place = placeOf(rule);
    return place !== undefined && !places.has(place);
  });
}

/** Address (empty: any), protocol and port that a rule matches; undefined when it matches no port. */
function placeOf(rule: RuleText): string | undefined {
  const port = / --dport (\d+) /.exec(rule)?.[1];
  if (port === undefined) return undefined;
  const [address = '', protocol = ''] = [/^-d (\S+) /.exec(rule)?.[1], /(?:^| )-p (\S+) /.exec(rule)?.[1]];
  return `${address} ${protocol} ${port}`;
}
