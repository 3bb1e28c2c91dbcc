import { addressAndPort, tryParseIp } from '@switchyard/core';
import type { DecodedFile } from './decode-file.ts';
import type { FlagValues } from './flags/parse-flags.ts';
import { traitsOf } from '../backends.ts';
import { defaultMode, proxyModeNamed, stanzaOf } from './proxy-mode.ts';
import type { FieldValue } from './schema/field.ts';
import { kubeProxySchema } from './schema/kube-proxy-fields.ts';
import { switchyardSchema } from './schema/switchyard-fields.ts';
import { type GivenSettings, type Setting, Settings } from './settings.ts';

/** All settings with defaults: kube-proxy's and Switchyard's. */
export interface EffectiveSettings {
  readonly kubeProxy: Settings;
  readonly switchyard: Settings;
}

/** The files that flags name, decoded. */
export interface ConfigFiles {
  readonly kubeProxy: DecodedFile | undefined;
  readonly switchyard: DecodedFile | undefined;
}

/** No file. */
export const noFiles: ConfigFiles = { kubeProxy: undefined, switchyard: undefined };

const servers = [
  { path: 'healthzBindAddress', port: 10_256, portFlag: 'healthz-port' },
  { path: 'metricsBindAddress', port: 10_249, portFlag: 'metrics-port' },
] as const;

/**
 * Merges flags and files. As in kube-proxy, a file replaces all flags except those for logging, the host name and the API
 * server's address. Flags of Switchyard take precedence over its file.
 */
export function effectiveSettings(flags: FlagValues, files: ConfigFiles): EffectiveSettings {
  const given = new Map([...(files.kubeProxy?.given ?? []), ...kubeProxyFlags(flags, files.kubeProxy !== undefined)]);
  completeAddresses(given, files.kubeProxy === undefined ? flags : undefined);
  const addresses = given.get('nodePortAddresses')?.value;
  if (Array.isArray(addresses) && addresses.length === 0) given.delete('nodePortAddresses'); // a flag that lists nothing
  return {
    kubeProxy: new Settings(kubeProxySchema, given, defaultsFor(given)),
    switchyard: new Settings(switchyardSchema, new Map([...(files.switchyard?.given ?? []), ...ownFlags(flags)])),
  };
}

function kubeProxyFlags(flags: FlagValues, hasFile: boolean): GivenSettings {
  const stanza = stanzaOf(proxyModeNamed(flags.get('proxy-mode')?.setting.value));
  const given = new Map<string, Setting>();
  for (const { flag, setting } of flags.values()) {
    const { target } = flag;
    if (hasFile && !flag.isKeptWithFile) continue;
    const isAddress = target.kind === 'field' && servers.some(({ path }) => path === target.path);
    if (setting.value === '' && !isAddress) continue; // says nothing
    if (target.kind === 'field') given.set(target.path, setting);
    if (target.kind === 'fieldOfMode') given.set(`${stanza}.${target.name}`, setting);
  }
  return given;
}

function ownFlags(flags: FlagValues): GivenSettings {
  return new Map(
    [...flags.values()].flatMap(({ flag: { target }, setting }) =>
      target.kind === 'own' ? [[target.path, setting] as const] : [],
    ),
  );
}

/** A bare IP address gets the server's usual port, or that of its deprecated flag, of which 0 means no server. */
function completeAddresses(given: Map<string, Setting>, flags: FlagValues | undefined): void {
  for (const { path, port, portFlag } of servers) {
    const ofFlag = flags?.get(portFlag)?.setting;
    const setting = given.get(path);
    const address = setting?.value;
    if (ofFlag?.value === 0) given.set(path, { ...ofFlag, value: '' });
    else if (setting !== undefined && typeof address === 'string') {
      const isBare = tryParseIp(address) !== undefined;
      const value = isBare ? addressAndPort(address, Number(ofFlag?.value ?? port)) : address;
      given.set(path, { ...(ofFlag ?? setting), value });
    }
  }
}

/** Defaults that depend on given settings, as kube-proxy sets them on Linux and shows them in `/configz`. */
function defaultsFor(given: GivenSettings): ReadonlyMap<string, FieldValue> {
  const { defaultNodePortAddresses } = traitsOf(proxyModeNamed(given.get('mode')?.value));
  const bindAddress = String(given.get('bindAddress')?.value ?? '');
  const isV6 = tryParseIp(bindAddress) !== undefined && bindAddress.includes(':'); // servers listen in its family
  return new Map<string, FieldValue>([
    ['mode', defaultMode],
    ...(defaultNodePortAddresses === 'all' ? [] : ([['nodePortAddresses', ['primary']]] as const)),
    ...(isV6 ? ([['healthzBindAddress', '[::]:10256']] as const) : []),
    ...(isV6 ? ([['metricsBindAddress', '[::1]:10249']] as const) : []),
  ]);
}
