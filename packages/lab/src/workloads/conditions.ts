import type { Condition } from '@switchyard/core/kubernetes';

/** The condition of that type, or undefined. */
export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * `conditions` with `next` in place of the condition of its type, moved to the end; its `lastTransitionTime` is kept
 * while the status stays the same. Returns the same list if status and reason are equal,
 * as the real controllers do: a new message or time alone causes no write.
 */
export function withCondition(conditions: readonly Condition[], next: Condition): readonly Condition[] {
  const current = findCondition(conditions, next.type);
  if (current?.status === next.status && current.reason === next.reason) return conditions;
  return replaceCondition(conditions, next);
}

/** Like `withCondition`, but also replaces a condition with equal status and reason. */
export function replaceCondition(conditions: readonly Condition[], next: Condition): readonly Condition[] {
  const current = findCondition(conditions, next.type);
  const kept =
    current?.status === next.status && typeof current.lastTransitionTime === 'string'
      ? { ...next, lastTransitionTime: current.lastTransitionTime }
      : next;
  return [...conditions.filter(({ type }) => type !== next.type), kept];
}
