import { type Cidr, type ForwardingTable, maxInterfaceNameLength, type PodDetector } from '@switchyard/core';
import type { Change } from './elements.ts';
import { type IntervalObject, suffixOf } from './names.ts';
import { withoutCovered } from './without-covered.ts';

/** Content of an interval set: sorted CIDRs, none covered; or interface names as nft quotes them, `*` for any rest. */
export type RenderedSetting = Extract<Change, { readonly kind: 'replace' }>;

export function renderSettings(table: ForwardingTable): readonly RenderedSetting[] {
  const suffix = suffixOf(table.ipFamily);
  const setting = (object: IntervalObject, cidrs: readonly Cidr[]): RenderedSetting => ({
    kind: 'replace',
    object: `${object}${suffix}`,
    content: withoutCovered(cidrs),
  });
  return [
    setting('pod-cidrs', table.podDetector.kind === 'cidr' ? [table.podDetector.cidr] : []),
    { kind: 'replace', object: `pod-interfaces${suffix}`, content: interfacesOf(table.podDetector) },
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
