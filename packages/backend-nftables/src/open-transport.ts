import type { NftablesHost } from './backend.ts';
import { createCliTransport } from './nft-cli/cli-transport.ts';
import { createNetlinkTransport } from './netlink/netlink-transport.ts';
import type { NftTransport } from './transport.ts';

/** The transport the host asks for. Throws `HostError` where it cannot be had: no other one is taken instead. */
export function openTransport({ runner, transport, netns }: NftablesHost): NftTransport {
  return transport === 'netlink' ? createNetlinkTransport({ runner, netns }) : createCliTransport(runner);
}
