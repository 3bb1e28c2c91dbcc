import { type Clock, type ForwardingTable, millis } from '@switchyard/core';
import { flowJudge, type StaleFlowOptions } from '@switchyard/core/engine';
import type { FlowTable } from '@switchyard/netfilter';

/**
 * A packet that was being translated while the kernel took a change enters the connection tracking a moment later, with the old
 * target. It takes microseconds; the second look comes after this.
 */
const secondLook = millis(50);

/** A table that was written to the kernel. */
export interface AppliedTable {
  readonly table: ForwardingTable;
  /** Services that it refused: their flows are left alone. */
  readonly except: StaleFlowOptions['except'];
  /** Whether any of it was new to it. */
  readonly hasChanged: boolean;
}

/**
 * Removes UDP flows to frontends of the table that lead to anything but a target that may go on serving: their clients would send to it
 * for as long as they send. Returns how many were removed.
 */
export async function removeStaleFlows(
  { table, except, hasChanged }: AppliedTable,
  { flows, clock }: { readonly flows: FlowTable; readonly clock: Clock },
  signal: AbortSignal,
): Promise<number> {
  const { destinationPorts, isStale } = flowJudge({ table, except, isLocalAddress: () => false }); // there are no NodePorts
  if (destinationPorts.size === 0) return 0;
  const look = async (): Promise<number> => {
    let count = 0;
    const query = { ipFamily: table.ipFamily, destinationPorts, isWanted: isStale };
    for await (const found of flows.list(query, signal)) count += flows.delete(found);
    return count;
  };
  const first = await look();
  if (!hasChanged) return first;
  await clock.sleep(secondLook, signal);
  return first + (await look());
}
