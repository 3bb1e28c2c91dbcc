import type { DataplaneBackend, DataplaneBackendFactory } from '@switchyard/core/engine';
import type { IpFamily } from '@switchyard/core';
import type { IptablesHost } from './kernel/host.ts';
import { openBackend } from './open-backend.ts';
import { probeHost } from './kernel/probe.ts';

export type { IptablesHost } from './kernel/host.ts';

/** Services and endpoints as kube-proxy's chains. */
export const iptablesBackend: DataplaneBackendFactory<IptablesHost> = {
  name: 'iptables',
  probe: (host, signal) => probeHost(host, signal),
  open: (host: IptablesHost, ipFamily: IpFamily, signal: AbortSignal): Promise<DataplaneBackend> =>
    openBackend(host, ipFamily, signal),
};
export { type DetectedVariant, detectVariant } from './kernel/client/detect-variant.ts';
