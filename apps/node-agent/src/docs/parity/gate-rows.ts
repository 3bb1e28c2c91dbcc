import { featureGates } from '../../config/feature-gates.ts';
import type { Release } from './row.ts';

/** A feature gate that changes kube-proxy, and its state in each compared release. */
export interface GateRow {
  readonly name: string;
  /** `-` where the release has no such gate. */
  readonly states: Readonly<Record<Release, string>>;
}

const inAll = (name: string, state: string): GateRow => ({
  name,
  states: { '1.36': state, '1.37': state, '1.38': state },
});
const since137 = (name: string, state: string, next: string = state): GateRow => ({
  name,
  states: { '1.36': '-', '1.37': state, '1.38': next },
});

/** kube-proxy's gates on Linux. Gates of other components: docs/generated/config.md. */
export const gateRows: readonly GateRow[] = [
  inAll('AllowServiceExternalIPs', 'deprecated, on'),
  inAll('ComponentFlagz', 'beta, on'),
  inAll('ComponentStatusz', 'beta, on'),
  inAll('ContextualLogging', 'beta, on'),
  since137('KubeProxyIPVS', 'deprecated, on'),
  since137('KubeProxyNFTablesLocalhostNodePorts', 'alpha, off', 'beta, on (kubernetes/kubernetes#142490)'),
  inAll('LoggingAlphaOptions', 'alpha, off'),
  inAll('LoggingBetaOptions', 'beta, on'),
  inAll('MultiCIDRServiceAllocator', 'locked on'),
  since137('NFTablesNetlink', 'beta, on'),
  inAll('NFTablesProxyMode', 'locked on'),
  { name: 'NativeHistograms', states: { '1.36': 'alpha, off', '1.37': 'beta, on', '1.38': 'beta, on' } },
  inAll('PreferSameTrafficDistribution', 'locked on'),
];

/** Gates of the table that the agent knows only with the change that adds NodePorts on loopback to the nftables mode. */
export const notYetKnownGates: ReadonlySet<string> = new Set(['KubeProxyNFTablesLocalhostNodePorts']);

/** The agent's use of a gate as a cell. */
export function gateEffect(name: string): string {
  const meaning = featureGates.find((gate) => gate.name === name)?.meaning;
  if (meaning === undefined) return 'TCP NodePorts on loopback in the nftables mode';
  return meaning.kind === 'effect' ? meaning.text : `no effect: ${meaning.why}`;
}
