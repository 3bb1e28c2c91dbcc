import { openOwnSocket } from '@switchyard/netfilter';
import type { NftablesHost } from './backend.ts';
import { createNetlinkTransport } from './kernel/netlink/netlink-transport.ts';
import { findTables } from './kernel/tables.ts';
import { tableNames } from './render/names.ts';
import { RulesGuard } from './watch/rules-guard.ts';
import type { NftTransport } from './kernel/transport.ts';

/** Opens the netlink transport. Throws `HostError` where no socket can be opened. */
export function openTransport(host: NftablesHost): NftTransport {
  if (host.openTransport !== undefined) return host.openTransport();
  const { netns, logger } = host;
  const keeper = new RulesGuard({ netns, logger });
  try {
    return createNetlinkTransport({ netns, keeper, open: openOwnSocket });
  } catch (error) {
    keeper[Symbol.dispose]();
    throw error;
  }
}

/** Whether the kernel has a table with the rules of this build. Rejects with `HostError` where it cannot be asked. */
export async function hasOurRules(host: NftablesHost, signal: AbortSignal): Promise<boolean> {
  await using transport = openTransport(host);
  const { current } = await findTables({ transport, names: host.tableNames ?? tableNames }, signal);
  return current !== undefined;
}
