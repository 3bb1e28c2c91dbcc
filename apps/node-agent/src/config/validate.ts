import { interfaceNameFault } from '@switchyard/core';
import type { EffectiveSettings } from './effective.ts';
import { isReadIn, type ProxyMode, proxyModeOf, proxyModes, stanzaOf } from './proxy-mode.ts';
import { podRanges } from './schema/checks.ts';
import { type Problem, problemAt, type Settings } from './settings.ts';

/** Purpose of the process; only running needs a mode that exists here. */
export type Purpose = 'run' | 'other';

/** Returns all faults of a configuration. */
export function problemsOf({ kubeProxy, switchyard }: EffectiveSettings, purpose: Purpose): readonly Problem[] {
  const mode = proxyModeOf(kubeProxy);
  return [
    ...fieldProblems(kubeProxy, mode),
    ...fieldProblems(switchyard, mode),
    ...modeProblems(kubeProxy, purpose),
    ...periodProblems(kubeProxy, mode),
    ...detectLocalProblems(kubeProxy),
    ...hostnameProblems(kubeProxy),
    ...sourceProblems(kubeProxy, switchyard),
    ...socketProblems(switchyard, mode),
  ];
}

/** Fields that the mode does not read are not checked, as in kube-proxy. */
function fieldProblems(settings: Settings, mode: ProxyMode): readonly Problem[] {
  return settings.entries().flatMap(([field, setting]) => {
    if (!isReadIn(mode, field) && field.isAlwaysChecked !== true) return [];
    const why = setting.origin.kind === 'default' ? undefined : field.check?.(setting.value);
    return problemAt(settings, field.path, why);
  });
}

function modeProblems(settings: Settings, purpose: Purpose): readonly Problem[] {
  const mode = settings.text('mode');
  const known = ['', ...proxyModes(), ...(purpose === 'other' ? ['ipvs'] : [])]; // nothing: the default
  return problemAt(settings, 'mode', known.includes(mode) ? undefined : modeRefusal(mode));
}

function modeRefusal(mode: string): string {
  const modes = proxyModes();
  const cure = `set mode: ${modes.slice(0, -1).join(', ')} or ${modes.at(-1)} (--proxy-mode)`;
  switch (mode) {
    case 'ipvs':
      return `this agent has no ipvs mode, which is deprecated in Kubernetes too (KEP-5495: off by default in 1.40, gone in 1.43); ${cure}`;
    case 'kernelspace':
      return `kernelspace is for Windows, and this agent is for Linux; ${cure}`;
    default:
      return `kube-proxy has iptables, ipvs and nftables, this agent has ebpf in the place of ipvs; ${cure}`;
  }
}

function periodProblems(settings: Settings, mode: ProxyMode): readonly Problem[] {
  const stanza = stanzaOf(mode);
  const [least, most] = [`${stanza}.minSyncPeriod`, `${stanza}.syncPeriod`];
  if (settings.number(least) <= settings.number(most) || settings.number(most) <= 0) return [];
  return problemAt(settings, most, `must be greater than or equal to ${settings.schema.kind}.${least}`);
}

const interfaceFields: Readonly<Record<string, string>> = {
  BridgeInterface: 'detectLocal.bridgeInterface',
  InterfaceNamePrefix: 'detectLocal.interfaceNamePrefix',
};

function detectLocalProblems(settings: Settings): readonly Problem[] {
  const mode = settings.text('detectLocalMode');
  if (mode === 'ClusterCIDR') {
    const { value, origin } = settings.at('clusterCIDR');
    return problemAt(settings, 'clusterCIDR', origin.kind === 'default' ? undefined : podRanges(value));
  }
  const path = interfaceFields[mode];
  if (path === undefined) return [];
  const name = settings.text(path);
  const fault = interfaceNameFault(name);
  const why =
    name === ''
      ? `must not be empty: detectLocalMode is ${mode}`
      : fault && `cannot be the name of an interface: ${fault}`;
  return problemAt(settings, path, why);
}

function hostnameProblems(settings: Settings): readonly Problem[] {
  const { value, origin } = settings.at('hostnameOverride');
  const isBlank = origin.kind !== 'default' && String(value).trim() === '';
  return problemAt(settings, 'hostnameOverride', isBlank ? 'must not be blank' : undefined);
}

function sourceProblems(kubeProxy: Settings, switchyard: Settings): readonly Problem[] {
  if (switchyard.text('manifests') === '' || kubeProxy.text('clientConnection.kubeconfig') === '') return [];
  const why = 'excludes a kubeconfig (clientConnection.kubeconfig, --kubeconfig); give one';
  return problemAt(switchyard, 'manifests', why);
}

/** tc programs serve only traffic from outside; pods whose sockets are not served need rules. */
function socketProblems(switchyard: Settings, mode: ProxyMode): readonly Problem[] {
  if (!switchyard.entries().some(([field]) => field.path === 'ebpf.socketLB' && isReadIn(mode, field))) return [];
  if (switchyard.text('ebpf.socketLB') !== 'host' || switchyard.text('ebpf.northSouth') !== 'tc') return [];
  const why =
    'needs rules for pods, which ebpf.northSouth: tc (--switchyard-ebpf-north-south) excludes; use auto or nftables there';
  return problemAt(switchyard, 'ebpf.socketLB', why);
}
