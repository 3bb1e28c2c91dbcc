import type { DataplaneBackend, DataplaneBackendFactory, IpFamily } from '@switchyard/core';
import { NftablesBackend, type NftablesHost } from './backend.ts';
import { openTransport, transportFault } from './open-transport.ts';
import { probeHost } from './probe.ts';

export type { NftablesHost } from './backend.ts';

/** Services and endpoints as elements of nftables maps under constant rules. */
export const nftablesBackend: DataplaneBackendFactory<NftablesHost> = {
  name: 'nftables',
  probe: async (host, signal) => {
    const fault = await transportFault(host);
    return fault === undefined ? probeHost(host, signal) : { status: 'unusable', reasons: [fault] };
  },
  open: async (host: NftablesHost, ipFamily: IpFamily): Promise<DataplaneBackend> =>
    new NftablesBackend(host, openTransport(host), ipFamily),
};
