import type { DataplaneBackend, DataplaneBackendFactory } from '@switchyard/core/engine';
import type { IpFamily } from '@switchyard/core';
import { NftablesBackend, type NftablesHost } from './backend.ts';
import { openTransport, transportFault } from './open-transport.ts';
import { probeHost } from './kernel/probe.ts';

export type { NftablesHost } from './backend.ts';
export { type TableChange, TableWriter, type TableWriterOptions } from './kernel/netlink/table-writer.ts';
export { NftError, type NftRefusal } from './kernel/nft-error.ts';
export { openRuleTrial, type RuleTrial } from './kernel/rule-trial.ts';
export type { ChainDescription, Rule, Statement, TableDescription } from './render/rules/model.ts';
export { printItem } from './render/rules/print.ts';

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
