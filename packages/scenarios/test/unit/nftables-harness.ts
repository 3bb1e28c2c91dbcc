import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import { nftablesBackend } from '@switchyard/backend-nftables';
import { FakeNft, tracePacket } from '@switchyard/backend-nftables/testing';
import { noopLogger } from '@switchyard/core';
import type { BackendHarness } from '../../src/index.ts';
import { addressPattern } from './address-pattern.ts';
import { observationOf } from './observation-of.ts';

/** backend-nftables over its transactional fake. */
export const nftablesHarness: BackendHarness = {
  name: 'nftables',
  dataplane: nftablesTraits,
  createKernel: () => {
    const nft = new FakeNft();
    return {
      open: (ipFamily, signal) =>
        nftablesBackend.open({ openTransport: nft.openTransport, logger: noopLogger }, ipFamily, signal),
      trace: (flow) => observationOf(tracePacket(nft, flow)),
      injectFailures: (rate, random) => {
        nft.failures = { rate, random };
      },
      refuse: (address) => {
        nft.refusing = addressPattern(address);
      },
      isEmpty: () => nft.ruleset.tables.size === 0,
    };
  },
};
