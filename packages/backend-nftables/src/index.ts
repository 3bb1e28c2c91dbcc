import type { DataplaneBackend, DataplaneBackendFactory } from '@switchyard/core/engine';
import { HostError, type IpFamily } from '@switchyard/core';
import { NftablesBackend, type NftablesHost } from './backend.ts';
import { NftError } from './kernel/nft-error.ts';
import { probeHost, usable } from './kernel/probe.ts';
import { hasOurRules, openTransport } from './open-transport.ts';

export type { NftablesHost } from './backend.ts';
export { type TableChange, TableWriter, type TableWriterOptions } from './kernel/netlink/table-writer.ts';
export { NftError, type NftRefusal } from './kernel/nft-error.ts';
export { openRuleTrial, type RuleTrial } from './kernel/probe.ts';
export type { ChainDescription, Rule, Statement, TableDescription } from './render/rules/model.ts';
export { printItem } from './render/rules/print.ts';

/** Services and endpoints as elements of nftables maps under constant rules. */
export const nftablesBackend: DataplaneBackendFactory<NftablesHost> = {
  name: 'nftables',
  probe: async (host, signal) => {
    try {
      // A kernel that has the rules takes them: a restart makes no network namespace to try them in.
      if (await hasOurRules(host, signal)) return usable;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      if (!(error instanceof NftError)) return { status: 'unusable', reasons: [error.message] };
    }
    return probeHost({ netns: host.netns }, signal);
  },
  open: async (host: NftablesHost, ipFamily: IpFamily): Promise<DataplaneBackend> =>
    new NftablesBackend(host, openTransport(host), ipFamily),
};
