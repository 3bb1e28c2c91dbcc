import type { Service } from '@switchyard/core/kubernetes';

/** Whether a Service selects pods with these labels, in its namespace. One without a selector selects none. */
export function selects({ spec }: Service, labels: Readonly<Record<string, string>>): boolean {
  const selector = Object.entries(spec?.selector ?? {});
  return selector.length > 0 && selector.every(([key, value]) => labels[key] === value);
}
