import type { DataplaneBackend, DataplaneBackendFactory, IpFamily } from '@switchyard/core';
import { NftablesBackend, type NftablesHost } from './backend.ts';
import { openTransport } from './open-transport.ts';
import { probeHost } from './probe.ts';

export type { NftablesHost } from './backend.ts';

/** Services and endpoints as elements of nftables maps under constant rules. */
export const nftablesBackend: DataplaneBackendFactory<NftablesHost> = {
  name: 'nftables',
  probe: (host, signal) => probeHost(host, signal),
  open: async (host: NftablesHost, ipFamily: IpFamily): Promise<DataplaneBackend> =>
    new NftablesBackend(host, openTransport(host), ipFamily),
};
