import { HostError } from '@switchyard/core';
import { openOwnSocket } from '@switchyard/netfilter';
import type { NftablesHost } from './backend.ts';
import { createNetlinkTransport } from './kernel/netlink/netlink-transport.ts';
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

/** Why the host's transport cannot be opened; undefined when it can. */
export async function transportFault(host: NftablesHost): Promise<string | undefined> {
  try {
    await openTransport(host)[Symbol.asyncDispose]();
    return undefined;
  } catch (error) {
    if (error instanceof HostError) return error.message;
    throw error;
  }
}
