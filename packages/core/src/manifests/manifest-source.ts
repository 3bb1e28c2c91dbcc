import { watch } from 'node:fs/promises';
import { objectArgument, requireMethods, requireText } from '../base/argument.ts';
import { isEqual } from '../base/values.ts';
import { ConfigError, messageOf } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { type ClusterEvent, resourceKinds, type ClusterStateSource } from '../model/state/cluster-event.ts';
import { type Clock, type Millis, millis, seconds } from '../base/time.ts';
import { ManifestFolder, ManifestReport } from './manifest-folder.ts';
import type { ManifestObject } from './read-manifest.ts';
import { waitFor } from '../base/abortable.ts';

/** Options of a manifest source. */
export interface ManifestSourceOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Wait after the last change of a burst: editors write in several steps. Default: 50 ms. */
  readonly debounce?: Millis;
  /** Interval of scans without notifications, which get lost on some file systems. Default: 10 s. */
  readonly rescan?: Millis;
}

type Objects = ReadonlyMap<string, ManifestObject>;

/**
 * Cluster state from a folder of manifests, followed as it changes. Every resource is in sync with the
 * first batch. A faulty file is logged with file, line and column, and its last valid content stays in force. Deleting a
 * file removes its objects.
 */
export class ManifestSource implements ClusterStateSource {
  readonly #options: ManifestSourceOptions;

  /** Throws `UsageError` without a folder, a clock or a logger. */
  constructor(options: ManifestSourceOptions) {
    const { folder, clock, log } = objectArgument('ManifestSource: options', options);
    requireText('ManifestSource: options.folder', folder);
    requireMethods('ManifestSource: options.clock', clock, ['monotonic', 'sleep']);
    requireMethods('ManifestSource: options.log', log, ['error', 'warn', 'info']);
    this.#options = options;
  }

  /** Throws `ConfigError` if the folder cannot be read at the start; later it waits until the folder is readable. */
  async *batches(signal: AbortSignal): AsyncGenerator<readonly ClusterEvent[]> {
    if (signal.aborted) return;
    const { clock, folder: path, log, rescan = seconds(10), debounce = millis(50) } = this.#options;
    const folder = new ManifestFolder(path);
    const report = new ManifestReport(log);
    const stop = new AbortController();
    const stopped = AbortSignal.any([signal, stop.signal]);
    const notice = new ChangeNotice(clock);
    const watching = followChanges(path, { notice, log }, stopped);
    try {
      let objects = await scan(folder, report).catch((cause: unknown) => {
        const message = `cannot read the manifest folder ${path}: ${messageOf(cause)}`;
        throw new ConfigError('manifests.folder', message, { cause });
      });
      yield resourceKinds.map((resource) => replaceAll(resource, objects));
      for (;;) {
        await notice.wait({ atMost: rescan, quiet: debounce }, stopped);
        const before = objects;
        objects = await scan(folder, report).catch((error: unknown) => {
          // An unreadable folder (a volume that is being replaced) does not count as empty.
          report.unreadable(path, error);
          return before;
        });
        const changes = difference(before, objects);
        if (changes.length > 0) yield changes;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stop.abort();
      await watching;
    }
  }
}

async function scan(folder: ManifestFolder, report: ManifestReport): Promise<Objects> {
  const state = await folder.scan();
  report.scanned(state);
  return state.objects;
}

function replaceAll<K extends ClusterEvent['resource']>(resource: K, objects: Objects): ClusterEvent {
  const items = [...objects.values()].filter((object) => object.resource === resource).map((object) => object.item);
  return { kind: 'replace', resource, items } as ClusterEvent; // filtered by the same resource
}

function difference(before: Objects, after: Objects): readonly ClusterEvent[] {
  const events: ClusterEvent[] = [];
  for (const [key, { name, resource }] of before) {
    if (!after.has(key)) events.push({ kind: 'delete', resource, name });
  }
  for (const [key, { item, resource }] of after) {
    if (!isEqual(before.get(key)?.item, item)) events.push({ kind: 'upsert', resource, item } as ClusterEvent); // one object's own parts
  }
  return events;
}

/** Notifies `notice` of every change in the folder. Ends when aborted, or when the system cannot watch. */
async function followChanges(
  path: string,
  { notice, log }: { readonly notice: ChangeNotice; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const _ of watch(path, { signal })) notice.notify();
  } catch (error) {
    if (signal.aborted) return;
    log.warn('cannot watch the manifest folder; it is scanned at intervals', { folder: path, error });
  }
}

/** Notification of changes, with one waiter. */
class ChangeNotice {
  readonly #clock: Clock;
  #notified = Promise.withResolvers<void>();
  #notifiedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  notify(): void {
    this.#notifiedAt = this.#clock.monotonic();
    this.#notified.resolve();
  }

  /** Resolves `quiet` after the last notification of a burst (ten waits at most), or after `atMost`. */
  async wait(limits: { readonly atMost: Millis; readonly quiet: Millis }, signal: AbortSignal): Promise<void> {
    await waitFor(this.#notified.promise, { clock: this.#clock, limit: limits.atMost }, signal);
    signal.throwIfAborted();
    for (let step = 0; step < 10; step++) {
      const left = this.#notifiedAt + limits.quiet - this.#clock.monotonic();
      if (left <= 0) break;
      await this.#clock.sleep(millis(left), signal);
    }
    this.#notified = Promise.withResolvers();
  }
}
