import { HostError, type IpFamily, millis, type ServicePortKey } from '@switchyard/core';
import type {
  ApplyOutcome,
  ApplyRequest,
  BackendCapabilities,
  BackendObservers,
  DataplaneBackend,
  DataplaneBackendFactory,
  Drift,
} from '@switchyard/core/engine';
import { changedKeys, type Entries, printEntries, renderService, renderSettings } from './render.ts';
import type { EntryStore } from './store.ts';
import { jsonFileTraits } from './traits.ts';

const { name } = jsonFileTraits;
const capabilities: BackendCapabilities = {
  usesKernelConntrack: false,
  sessionAffinity: true,
  sourceRanges: true,
  minSyncPeriod: millis(100),
};

/** Writes the forwarding table to a file, for a proxy that reads it. */
export function jsonFileBackend(store: EntryStore): DataplaneBackendFactory<unknown> {
  return {
    name,
    probe: async () => ({ status: 'usable', capabilities }),
    open: async (_, ipFamily) => new JsonFileBackend(store, ipFamily),
  };
}

class JsonFileBackend implements DataplaneBackend {
  readonly name = name;
  readonly capabilities = capabilities;
  readonly ipFamily: IpFamily;
  readonly observers: BackendObservers;
  readonly #store: EntryStore;
  /** Content of the file after the last apply; undefined when it is not known. */
  #applied: Entries | undefined;

  constructor(store: EntryStore, ipFamily: IpFamily) {
    this.#store = store;
    this.ipFamily = ipFamily;
    this.observers = { drift: (report, signal) => this.#watch(report, signal) };
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    const { scope } = request;
    const known = scope.kind === 'delta' ? this.#applied : undefined;
    this.#applied = undefined;
    try {
      const before = known ?? (await this.#store.read(this.ipFamily));
      const { entries, failed } = this.#wanted(request, known);
      const { length: writes } = changedKeys(before, entries);
      if (writes > 0) {
        signal.throwIfAborted();
        await this.#store.write(this.ipFamily, entries);
      }
      this.#applied = entries;
      return failed.size === 0 ? { status: 'applied', writes } : { status: 'partial', writes, failed };
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      return { status: 'failed', error };
    }
  }

  /** The entries of a table, from those of the table before if they are known. Services that are refused are left out. */
  #wanted({ table, scope }: ApplyRequest, known: Entries | undefined): Wanted {
    const isDelta = scope.kind === 'delta' && known !== undefined;
    const entries = new Map(isDelta ? known : []);
    const failed = new Map<ServicePortKey, Error>();
    for (const key of isDelta ? scope.delta.removed : []) entries.delete(key);
    for (const service of isDelta ? scope.delta.upserted : table.services.values()) {
      const text = renderService(service);
      const refusal = this.#store.refusal(text);
      if (refusal === undefined) entries.set(service.key, text);
      else {
        entries.delete(service.key);
        failed.set(service.key, refusal);
      }
    }
    return { entries: entries.set('settings', renderSettings(table)), failed };
  }

  async cleanup(): Promise<readonly string[]> {
    this.#applied = undefined;
    const { size } = await this.#store.read(this.ipFamily);
    if (size === 0) return [];
    await this.#store.write(this.ipFamily, new Map());
    return [`${size} entries of ${this.ipFamily}`];
  }

  async dump(): Promise<string> {
    return printEntries(await this.#store.read(this.ipFamily));
  }

  /** An own write is no drift: the file then is as the last apply left it, or an apply is under way. */
  async #watch(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const compare = async (): Promise<void> => {
      const found = await this.#store.read(this.ipFamily).catch(() => undefined); // not readable: the next apply says why
      if (this.#applied === undefined) return;
      const keys = found === undefined ? ['the file'] : changedKeys(this.#applied, found);
      if (keys.length > 0)
        report({ kind: 'element', changes: keys.slice(0, 5).map((key) => `${key} changed`), process: undefined });
    };
    await this.#store.watch(this.ipFamily, () => void compare(), signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Forwarding stays: the file is what a reader goes on with.
  }
}

interface Wanted {
  readonly entries: Entries;
  readonly failed: ReadonlyMap<ServicePortKey, Error>;
}
