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
    return why === undefined ? [] : [problemAt(settings.schema, field.path, setting, why)];
  });
}

function modeProblems(settings: Settings, purpose: Purpose): readonly Problem[] {
  const setting = settings.at('mode');
  const mode = settings.text('mode');
  const known = ['', ...proxyModes(), ...(purpose === 'other' ? ['ipvs'] : [])]; // nothing: the default
  if (known.includes(mode)) return [];
  return [problemAt(settings.schema, 'mode', setting, modeRefusal(mode))];
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
  const why = `must be greater than or equal to ${settings.schema.kind}.${least}`;
  return [problemAt(settings.schema, most, settings.at(most), why)];
}

const interfaceFields: Readonly<Record<string, string>> = {
  BridgeInterface: 'detectLocal.bridgeInterface',
  InterfaceNamePrefix: 'detectLocal.interfaceNamePrefix',
};

function detectLocalProblems(settings: Settings): readonly Problem[] {
  const mode = settings.text('detectLocalMode');
  if (mode === 'ClusterCIDR') return clusterCidrProblems(settings);
  const path = interfaceFields[mode];
  if (path === undefined) return [];
  const name = settings.text(path);
  const fault = interfaceNameFault(name);
  const why =
    name === ''
      ? `must not be empty: detectLocalMode is ${mode}`
      : fault && `cannot be the name of an interface: ${fault}`;
  return why === undefined ? [] : [problemAt(settings.schema, path, settings.at(path), why)];
}

/** Checks the ranges, which only this `detectLocalMode` reads. */
function clusterCidrProblems(settings: Settings): readonly Problem[] {
  const setting = settings.at('clusterCIDR');
  const why = setting.origin.kind === 'default' ? undefined : podRanges(setting.value);
  return why === undefined ? [] : [problemAt(settings.schema, 'clusterCIDR', setting, why)];
}

function hostnameProblems(settings: Settings): readonly Problem[] {
  const setting = settings.at('hostnameOverride');
  const text = settings.text('hostnameOverride');
  if (setting.origin.kind === 'default' || text.trim() !== '') return [];
  return [problemAt(settings.schema, 'hostnameOverride', setting, 'must not be blank')];
}

function sourceProblems(kubeProxy: Settings, switchyard: Settings): readonly Problem[] {
  if (switchyard.text('manifests') === '' || kubeProxy.text('clientConnection.kubeconfig') === '') return [];
  const why = 'excludes a kubeconfig (clientConnection.kubeconfig, --kubeconfig); give one';
  return [problemAt(switchyard.schema, 'manifests', switchyard.at('manifests'), why)];
}

/** tc programs serve only traffic from outside; pods whose sockets are not served need rules. */
function socketProblems(switchyard: Settings, mode: ProxyMode): readonly Problem[] {
  if (!switchyard.entries().some(([field]) => field.path === 'ebpf.socketLB' && isReadIn(mode, field))) return [];
  if (switchyard.text('ebpf.socketLB') !== 'host' || switchyard.text('ebpf.northSouth') !== 'tc') return [];
  const why =
    'needs rules for pods, which ebpf.northSouth: tc (--switchyard-ebpf-north-south) excludes; use auto or nftables there';
  return [problemAt(switchyard.schema, 'ebpf.socketLB', switchyard.at('ebpf.socketLB'), why)];
}
