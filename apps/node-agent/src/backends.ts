import type { NftablesHost } from '@switchyard/backend-nftables';
import { type DataplaneBackend, type DataplaneBackendFactory, HostError, type IpFamily } from '@switchyard/core';

/** Every dataplane by its --proxy-mode; loaded only when chosen. */
export const backends = {
  nftables: async (): Promise<DataplaneBackendFactory<NftablesHost>> =>
    (await import('@switchyard/backend-nftables')).nftablesBackend,
};

/** One backend per family, after asking whether this host can run it. Rejects with `HostError` if not. */
export async function openBackends(
  host: NftablesHost,
  ipFamilies: readonly IpFamily[],
  signal: AbortSignal,
): Promise<readonly DataplaneBackend[]> {
  const factory = await backends.nftables();
  const probe = await factory.probe(host, signal);
  if (probe.status === 'unusable') {
    throw new HostError(
      'host.unusable',
      `this host cannot run --proxy-mode ${factory.name}: ${probe.reasons.join('; ')}`,
    );
  }
  return Promise.all(ipFamilies.map((ipFamily) => factory.open(host, ipFamily, signal)));
}
