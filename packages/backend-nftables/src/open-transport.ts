import { HostError } from '@switchyard/core';
import type { NftablesHost } from './backend.ts';
import { createNetlinkTransport } from './netlink/netlink-transport.ts';
import { createCliTransport } from './nft-cli/cli-transport.ts';
import type { NftTransport } from './transport.ts';

/** The transport the host asks for. Throws `HostError` where it cannot be had: no other one is taken instead. */
export function openTransport({ runner, transport, netns }: NftablesHost): NftTransport {
  return transport === 'netlink' ? createNetlinkTransport({ runner, netns }) : createCliTransport(runner);
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
