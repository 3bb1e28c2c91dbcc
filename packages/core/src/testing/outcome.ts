import { explain } from '../model/forwarding/explain.ts';
import type { Flow, Verdict } from '../model/forwarding/explain-types.ts';
import type { ForwardingTable } from '../model/forwarding/forwarding-table.ts';
import { strictTraits } from './traits.ts';

/** Returns the verdict of a table on a flow, on one line: see `verdictText`. */
export function outcome(table: ForwardingTable, flow: Flow): string {
  return verdictText(explain(table, flow, strictTraits).verdict);
}

/**
 * A verdict on one line: `reject`, `drop`, `pass`, or the endpoints' addresses in order with
 * ` masqueraded` after them. Ports are left out.
 */
export function verdictText(verdict: Verdict): string {
  if (verdict.kind !== 'forward') return verdict.kind;
  const addresses = verdict.endpoints.map((endpoint) => endpoint.address).join(' ');
  return verdict.masquerade ? `${addresses} masqueraded` : addresses;
}
