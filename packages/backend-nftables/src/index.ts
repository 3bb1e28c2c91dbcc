import type { DataplaneBackend, DataplaneBackendFactory, IpFamily } from '@switchyard/core';
import { NftablesBackend, type NftablesHost } from './backend.ts';
import { openTransport, transportFault } from './open-transport.ts';
import { probeHost } from './probe.ts';

export type { NftablesHost } from './backend.ts';
export { type TableChange, TableWriter, type TableWriterOptions } from './netlink/table-writer.ts';
export { NftError, type NftRefusal } from './nft-error.ts';
export { openRuleTrial, type RuleTrial } from './rule-trial.ts';
export type { ChainDescription, Rule, Statement, TableDescription } from './rules/model.ts';
export { printItem } from './rules/print.ts';

/** Services and endpoints as elements of nftables maps under constant rules. */
export const nftablesBackend: DataplaneBackendFactory<NftablesHost> = {
  name: 'nftables',
  probe: async (host, signal) => {
    const fault = await transportFault(host);
    return fault === undefined ? probeHost({ netns: host.netns }, signal) : { status: 'unusable', reasons: [fault] };
  },
  open: async (host: NftablesHost, ipFamily: IpFamily): Promise<DataplaneBackend> =>
    new NftablesBackend(host, openTransport(host), ipFamily),
};
