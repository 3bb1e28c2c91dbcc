import { InvariantError } from '../base/errors.ts';
import type { Flow, Verdict } from '../model/forwarding/explain-types.ts';
import { addressAndPort } from '../model/ip/port.ts';

/** A verdict without objects: endpoints as `address:port`, IPv6 in brackets, sorted. */
export type TracedVerdict =
  | { readonly kind: 'forward'; readonly endpoints: readonly string[]; readonly masquerade: boolean }
  | { readonly kind: 'reject' | 'drop' | 'pass' };

/** One way a packet can go; `endpoint` as in `TracedVerdict`, `address` its address alone. */
export type TracedOutcome =
  | { readonly kind: 'forward'; readonly address: string; readonly endpoint: string; readonly masquerade: boolean }
  | { readonly kind: 'reject' | 'drop' | 'pass' };

/** What `explain` says in the form of a tracer, for comparison. */
export function comparableVerdict(verdict: Verdict, flow: Flow): TracedVerdict {
  if (verdict.kind !== 'forward') return verdict;
  const isOnlySender = verdict.endpoints.every((endpoint) => endpoint.address === flow.source);
  return {
    kind: 'forward',
    endpoints: verdict.endpoints.map(({ address, port }) => addressAndPort(address, port)).sort(),
    masquerade: verdict.masquerade || isOnlySender,
  };
}

/**
 * All ways of one flow's first packet as one verdict. An endpoint that is the sender must be masqueraded; that is checked here,
 * and `masquerade` speaks of the others (true when there is no other). `choice` is what made the ways differ, for messages.
 */
export function summarizeOutcomes(outcomes: readonly TracedOutcome[], flow: Flow, choice: string): TracedVerdict {
  const forwards = outcomes.filter((outcome) => outcome.kind === 'forward');
  const [first] = outcomes;
  if (forwards.length === 0 && first !== undefined && first.kind !== 'forward') return { kind: first.kind };
  if (forwards.length !== outcomes.length) {
    const kinds = JSON.stringify([...new Set(outcomes.map(({ kind }) => kind))]);
    throw new InvariantError(`the outcome depends on ${choice}: ${kinds}`);
  }
  const others = forwards.filter(({ address }) => address !== flow.source);
  const senders = forwards.filter(({ address }) => address === flow.source);
  if (senders.some(({ masquerade }) => !masquerade)) {
    throw new InvariantError(`${flow.source} would talk to itself unmasqueraded`);
  }
  const masquerades = new Set(others.map(({ masquerade }) => masquerade));
  if (masquerades.size > 1) throw new InvariantError(`masquerading depends on ${choice}`);
  return {
    kind: 'forward',
    endpoints: [...new Set(forwards.map(({ endpoint }) => endpoint))].sort(),
    masquerade: others[0]?.masquerade ?? true,
  };
}
