import { nftablesBackend } from '@switchyard/backend-nftables';
import { FakeNft, tracePacket } from '@switchyard/backend-nftables/testing';
import { noopLogger, parseIp } from '@switchyard/core';
import type { BackendHarness, Observation } from '../../src/index.ts';

/** backend-nftables over its transactional fake. */
export const nftablesHarness: BackendHarness = {
  name: 'nftables',
  dataplane: 'nftables',
  createKernel: () => {
    const nft = new FakeNft();
    return {
      open: (ipFamily, signal) =>
        nftablesBackend.open({ runner: nft, transport: 'cli', logger: noopLogger }, ipFamily, signal),
      trace: (flow) => observationOf(tracePacket(nft, flow)),
      injectFailures: (rate, random) => {
        nft.failures = { rate, random };
      },
      refuse: (address) => {
        const pattern = address?.replaceAll('.', '\\.');
        nft.refusing = pattern === undefined ? undefined : new RegExp(`(?<![0-9a-f.:])${pattern}(?![0-9a-f.:])`);
      },
      isEmpty: () => nft.ruleset.tables.size === 0,
    };
  },
};

function observationOf(verdict: ReturnType<typeof tracePacket>): Observation {
  if (verdict.kind !== 'forward') return verdict;
  return { kind: 'forward', to: verdict.endpoints.map(placeOf), masquerade: verdict.masquerade };
}

function placeOf(text: string): { readonly address: ReturnType<typeof parseIp>; readonly port: number } {
  const end = text.lastIndexOf(':');
  return { address: parseIp(text.slice(0, end).replace(/^\[|\]$/g, '')), port: Number(text.slice(end + 1)) };
}
