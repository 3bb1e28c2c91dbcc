import { backendOf, registeredBackends, traitsOf } from '../backends.ts';
import type { Field } from './schema/field.ts';
import type { Settings } from './settings.ts';

/** Name of a registered backend. */
export type ProxyMode = string;

/** Mode of a configuration that names none, as in kube-proxy. */
export const defaultMode: ProxyMode = 'iptables';

/** Returns the values of `mode` and --proxy-mode that this agent supports. */
export function proxyModes(): readonly ProxyMode[] {
  return registeredBackends().map(({ traits }) => traits.name);
}

/** Whether the configuration sets a mode. */
export function isModeSaid(kubeProxy: Settings): boolean {
  return kubeProxy.at('mode').origin.kind !== 'default';
}

/** The mode in kube-proxy's settings; one that does not exist here counts as the default. */
export function proxyModeOf(kubeProxy: Settings): ProxyMode {
  return proxyModeNamed(kubeProxy.text('mode'));
}

/** The mode of that name; anything else is the default, as in kube-proxy. */
export function proxyModeNamed(name: unknown): ProxyMode {
  return proxyModes().find((mode) => mode === name) ?? defaultMode;
}

/** Returns the stanza of kube-proxy's file that a mode reads. */
export function stanzaOf(mode: ProxyMode): string {
  return traitsOf(mode).kubeProxyMode;
}

/** Whether a mode reads a field. */
export function isReadIn(mode: ProxyMode, { modes }: Pick<Field, 'modes'>): boolean {
  const { settings, traits } = backendOf(mode);
  const names = modes.split(', ');
  // Other words, such as `all` and `Linux`, do not limit a field.
  const isLimited = names.some((name) => name === 'ipvs' || proxyModes().includes(name));
  return !isLimited || names.includes(settings ?? traits.kubeProxyMode);
}

/** Why a field that `mode` does not read has no effect. */
export function unreadReason(mode: ProxyMode, { modes }: Pick<Field, 'modes'>): string {
  const names = modes.split(', ');
  const which = names.length === 1 ? `the ${names[0]} mode reads` : `the ${names.join(' and ')} modes read`;
  return `only ${which} it, and the mode is ${mode}`;
}
