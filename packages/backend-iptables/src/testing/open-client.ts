import type { IptablesPlace } from '@switchyard/netfilter/iptables';
import { createIptablesClient, findPrograms, type IptablesClientOptions } from '../kernel/client/create-client.ts';
import type { IptablesClient } from '../kernel/client/iptables-client.ts';

/** Finds the programs of a place and makes a client of them. Rejects with `HostError` when they are not installed. */
export async function openIptablesClient(
  options: IptablesPlace & Pick<IptablesClientOptions, 'runner'>,
  signal: AbortSignal,
): Promise<IptablesClient> {
  return createIptablesClient({ ...options, ...(await findPrograms(options, signal)) });
}
