import { type Cidr, type ForwardingTable, maxInterfaceNameLength, type PodDetector } from '@switchyard/core';
import type { Change } from './elements.ts';
import { type IntervalObject, type ObjectName, suffixOf } from './names.ts';
import { withoutCovered } from './without-covered.ts';

/**
 * The wanted content of one interval set: CIDRs, sorted, without one that another one covers; or interface names as nft
 * writes them, in quotes, with `*` for any rest.
 */
export interface RenderedSetting {
  readonly object: ObjectName;
  readonly content: readonly string[];
}

/** Everything of a table that belongs to no service. */
export function renderSettings(table: ForwardingTable): readonly RenderedSetting[] {
  const suffix = suffixOf(table.ipFamily);
  const setting = (object: IntervalObject, cidrs: readonly Cidr[]): RenderedSetting => ({
    object: `${object}${suffix}`,
    content: withoutCovered(cidrs),
  });
  return [
    setting('pod-cidrs', table.podDetector.kind === 'cidr' ? [table.podDetector.cidr] : []),
    { object: `pod-interfaces${suffix}`, content: interfacesOf(table.podDetector) },
    setting('nodeport-ips', table.nodePortCidrs),
    setting('service-cidrs', table.serviceCidrs),
  ];
}

/** A prefix as long as names can be is a name. */
function interfacesOf(detector: PodDetector): readonly string[] {
  if (detector.kind === 'interface') return [`"${detector.name}"`];
  if (detector.kind !== 'interfacePrefix') return [];
  const { prefix } = detector;
  return [Buffer.byteLength(prefix) < maxInterfaceNameLength ? `"${prefix}*"` : `"${prefix}"`];
}

/** The change that gives an interval set its wanted content. */
export function settingChange(setting: RenderedSetting): Change {
  return { kind: 'replace', object: setting.object, content: setting.content };
}
