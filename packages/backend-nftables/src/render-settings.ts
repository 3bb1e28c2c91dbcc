import type { Cidr, ForwardingTable } from '@switchyard/core';
import type { Change } from './elements.ts';
import { type IntervalObject, type ObjectName, suffixOf } from './names.ts';
import { withoutCovered } from './without-covered.ts';

/** The wanted content of one interval set: sorted, without a CIDR that another one covers. */
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
    setting('nodeport-ips', table.nodePortCidrs),
    setting('service-cidrs', table.serviceCidrs),
  ];
}

/** The change that gives an interval set its wanted content. */
export function settingChange(setting: RenderedSetting): Change {
  return { kind: 'replace', object: setting.object, content: setting.content };
}
