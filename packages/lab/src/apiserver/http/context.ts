import type { Clock, Millis } from '@switchyard/core';
import type { AccessCheck } from '../access/access.ts';
import type { Connect } from '../connect-in-namespace.ts';
import type { Registry } from '../registry/registry.ts';
import type { ResourceDefinition } from '../resource.ts';
import type { Store } from '../store/store.ts';
import type { Documents } from './documents.ts';
import type { FaultList } from './faults.ts';
import type { WatchSession } from './watch.ts';

/** Shared state of the request handlers. */
export interface ServerContext {
  readonly store: Store;
  readonly registry: Registry;
  readonly resources: readonly ResourceDefinition[];
  readonly clock: Clock;
  /** Between bookmarks of a watch. */
  readonly bookmarkInterval: Millis;
  readonly faults: FaultList;
  readonly access: AccessCheck;
  /** Open watches. */
  readonly sessions: Set<WatchSession>;
  readonly documents: Documents;
  /** Opens connections to pods, for `pods/proxy`. */
  readonly connect: Connect;
}
