import { readFileSync } from 'node:fs';
import type { PolicyRule } from '@switchyard/lab';

/** The rules of the ClusterRole that docs/operate/kind.md shows. */
export function rightsInGuide(): readonly PolicyRule[] {
  const guide = readFileSync(new URL('../../../../../docs/operate/kind.md', import.meta.url), 'utf8');
  const words = (list = ''): readonly string[] => list.split(',').map((word) => word.trim().replaceAll("'", ''));
  const rule = /- apiGroups: \[(.*)\]\n +resources: \[(.*)\]\n +verbs: \[(.*)\]/g;
  return [...guide.matchAll(rule)].map(([, groups, resources, verbs]) => ({
    apiGroups: words(groups),
    resources: words(resources),
    verbs: words(verbs),
  }));
}
