import { HostError } from '@switchyard/core';
import { openOwnSocket } from '@switchyard/native';
import type { NftablesHost } from './backend.ts';
import { createCliTransport } from './nft-cli/cli-transport.ts';
import { createNetlinkTransport } from './netlink/netlink-transport.ts';
import { RulesGuard } from './rules-guard.ts';
import type { NftTransport } from './transport.ts';

/** The transport the host asks for. Throws `HostError` where it cannot be had: no other one is taken instead. */
export function openTransport({ runner, transport, netns, logger }: NftablesHost): NftTransport {
  if (transport === 'cli') return createCliTransport(runner, netns);
  const keeper = new RulesGuard({ netns, logger });
  try {
    return createNetlinkTransport({ runner, netns, keeper, open: openOwnSocket });
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
