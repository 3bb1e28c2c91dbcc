import type { LabelSelector } from '@switchyard/core/kubernetes';

/** Labels of an object. */
export type Labels = Readonly<Record<string, string>>;

/** Whether all of `wanted` are among `labels`. Empty `wanted` matches everything. */
export function matchesLabels(wanted: Labels, labels: Labels | undefined): boolean {
  return Object.entries(wanted).every(([key, value]) => labels?.[key] === value);
}

/** Whether `labels` satisfy the selector. An absent selector matches nothing, an empty one everything. */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  if (selector === undefined) return false;
  if (!matchesLabels(selector.matchLabels ?? {}, labels)) return false;
  return (selector.matchExpressions ?? []).every(({ key, operator, values }) => {
    const value = labels?.[key];
    switch (operator) {
      case 'In':
        return value !== undefined && (values ?? []).includes(value);
      case 'NotIn':
        return value === undefined || !(values ?? []).includes(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      default:
        return false;
    }
  });
}

/** Labels in the text form of a `labelSelector` parameter. */
export function selectorText(labels: Labels): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}
