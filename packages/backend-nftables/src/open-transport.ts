import type { NftablesHost } from './backend.ts';
import { createCliTransport } from './nft-cli/cli-transport.ts';
import type { NftTransport } from './transport.ts';

/** The transport the host asks for. */
export async function openTransport({ runner }: NftablesHost): Promise<NftTransport> {
  return createCliTransport(runner);
}
