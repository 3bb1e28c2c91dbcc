import type { ResourceContext } from '../resource.ts';
import { nodes } from '../resources/nodes.ts';
import type { RegistryContext } from './registry.ts';

/** Returns the context of a kind's defaulting and validation. */
export function resourceContext(context: RegistryContext): ResourceContext {
  return {
    now: context.clock.now(),
    allocations: context.allocations,
    findNode: (name) => context.store.get(nodes, '', name)?.value,
  };
}

/** Returns the current time in the form of the API: RFC 3339 in whole seconds. */
export function timestamp(context: RegistryContext, secondsLater = 0): string {
  return `${new Date(context.clock.now() + secondsLater * 1000).toISOString().slice(0, 19)}Z`;
}
