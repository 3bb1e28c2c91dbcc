import type { DataplaneBackendFactory } from '@switchyard/core/engine';
import type { IptablesHost } from './kernel/facts.ts';
import { openBackend } from './open-backend.ts';
import { probeHost } from './kernel/probe.ts';

export type { IptablesHost } from './kernel/facts.ts';

/** Services and endpoints as kube-proxy's chains. */
export const iptablesBackend: DataplaneBackendFactory<IptablesHost> = {
  name: 'iptables',
  probe: probeHost,
  open: openBackend,
};
export { type DetectedVariant, detectVariant } from './kernel/client/detect-variant.ts';
