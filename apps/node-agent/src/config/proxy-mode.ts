import type { Field } from './schema/field.ts';
import type { Settings } from './settings.ts';

/** How the kernel is programmed: the modes that exist here. */
export type ProxyMode = 'iptables' | 'nftables';

/** Words in `Field.modes` that name a mode of kube-proxy; others (`all`, `Linux`) do not limit a field. */
const kubeProxyModes: ReadonlySet<string> = new Set(['iptables', 'ipvs', 'nftables']);

/** Whether a mode was given: none is iptables, as in kube-proxy. */
export function isModeSaid(kubeProxy: Settings): boolean {
  return kubeProxy.at('mode').origin.kind !== 'default';
}

/** The mode that kube-proxy's settings ask for; one that does not exist here counts as iptables. */
export function proxyModeOf(kubeProxy: Settings): ProxyMode {
  return kubeProxy.text('mode') === 'nftables' ? 'nftables' : 'iptables';
}

/** Whether a mode reads a field. */
export function isReadIn(mode: ProxyMode, { modes }: Pick<Field, 'modes'>): boolean {
  return !isOfSomeModes(modes) || modes.split(', ').includes(mode);
}

/** Why a field that `mode` does not read has no effect. */
export function unreadReason(mode: ProxyMode, { modes }: Pick<Field, 'modes'>): string {
  const names = modes.split(', ');
  const which = names.length === 1 ? `the ${names[0]} mode reads` : `the ${names.join(' and ')} modes read`;
  return `only ${which} it, and the mode is ${mode}`;
}

function isOfSomeModes(modes: string): boolean {
  return modes.split(', ').some((name) => kubeProxyModes.has(name));
}
