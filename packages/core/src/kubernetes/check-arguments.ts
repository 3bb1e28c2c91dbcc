import {
  type ArgumentCheck,
  objectArgument,
  optional,
  requireClock,
  requireFields,
  requireFunction,
  requireMetrics,
  requireNumber,
  requireText,
  withMethods,
  wrongArgument,
} from '../base/argument.ts';

/** Throws `UsageError` unless `value` is the URL of an API server. */
export function requireUrl(name: string, value: unknown): void {
  if (!(value instanceof URL)) throw wrongArgument(name, 'a URL', value);
  if (!['http:', 'https:'].includes(value.protocol)) throw wrongArgument(name, 'an http or https URL', value.href);
}

/** Throws `UsageError` unless `value` looks like an `ApiServerConnection`. */
export function requireConnection(name: string, value: unknown): void {
  const credentials = withMethods('authorization', 'forget');
  requireFields(name, value, { url: requireUrl, tls: objectArgument, credentials });
}

/** Throws `UsageError` unless the options of a client have their types. */
export function requireClientOptions(name: string, value: unknown): void {
  requireFields(name, value, {
    clock: requireClock,
    userAgent: requireText,
    metrics: optional(requireMetrics),
    connectLimit: optional(requireNumber),
    onAddress: optional(requireFunction),
    agent: requireAgent,
  });
}

/** Check for a pool of connections, or undefined. */
export const requireAgent: ArgumentCheck = optional(withMethods('destroy'));
