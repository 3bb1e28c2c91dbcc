import type { Field } from './schema/field.ts';
import type { Settings } from './settings.ts';

/** The modes that exist here, by the words of `mode` and --proxy-mode; `ebpf` is ours, kube-proxy does not know it. */
export const proxyModes = ['iptables', 'nftables', 'ebpf'] as const;

/** How the kernel is programmed. */
export type ProxyMode = (typeof proxyModes)[number];

/** Words in `Field.modes` that name a mode; others (`all`, `Linux`) do not limit a field. */
const namedModes: ReadonlySet<string> = new Set([...proxyModes, 'ipvs']);

/** Whether a mode was given: none is iptables, as in kube-proxy. */
export function isModeSaid(kubeProxy: Settings): boolean {
  return kubeProxy.at('mode').origin.kind !== 'default';
}

/** The mode that kube-proxy's settings ask for; one that does not exist here counts as iptables. */
export function proxyModeOf(kubeProxy: Settings): ProxyMode {
  return proxyModeNamed(kubeProxy.text('mode'));
}

/** The mode of that name; anything else is iptables, as in kube-proxy. */
export function proxyModeNamed(name: unknown): ProxyMode {
  return proxyModes.find((mode) => mode === name) ?? 'iptables';
}

/** Which part of kube-proxy's file a mode reads: it has none for ebpf, which reads that of nftables. */
export function stanzaOf(mode: ProxyMode): 'iptables' | 'nftables' {
  return mode === 'iptables' ? 'iptables' : 'nftables';
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
  return modes.split(', ').some((name) => namedModes.has(name));
}
