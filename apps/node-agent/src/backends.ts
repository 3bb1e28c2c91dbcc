import type { DataplaneBackendFactory } from '@switchyard/core';
import type { NftablesHost } from '@switchyard/backend-nftables';

/** Every dataplane by its --proxy-mode; loaded only when chosen. */
export const backends = {
  nftables: async (): Promise<DataplaneBackendFactory<NftablesHost>> =>
    (await import('@switchyard/backend-nftables')).nftablesBackend,
};
