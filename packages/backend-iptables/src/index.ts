import type { DataplaneBackend, DataplaneBackendFactory, IpFamily } from '@switchyard/core';
import type { IptablesHost } from './host.ts';
import { openBackend } from './open-backend.ts';
import { probeHost } from './probe.ts';

export type { IptablesHost } from './host.ts';

/** Services and endpoints as kube-proxy's chains. */
export const iptablesBackend: DataplaneBackendFactory<IptablesHost> = {
  name: 'iptables',
  probe: (host, signal) => probeHost(host, signal),
  open: (host: IptablesHost, ipFamily: IpFamily, signal: AbortSignal): Promise<DataplaneBackend> =>
    openBackend(host, ipFamily, signal),
};
export { type DetectedVariant, detectVariant } from './client/detect-variant.ts';
