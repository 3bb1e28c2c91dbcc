import { mkdir, readFile, rename, rm, watch, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HostError, type IpFamily, messageOf } from '@switchyard/core';
import { type Entries, parseEntries, printEntries } from './render.ts';

/** The kernel of this backend: one file per family. */
export interface EntryStore {
  /** Empty if there is no file. Rejects with `HostError`. */
  read(ipFamily: IpFamily): Promise<Entries>;
  /** Replaces the file as a whole; removes it for no entries. Rejects with `HostError`. */
  write(ipFamily: IpFamily, entries: Entries): Promise<void>;
  /** Why readers of the file cannot take an entry; undefined if they can. */
  refusal(text: string): Error | undefined;
  /** Reports that the file may have changed, until aborted. Rejects with `HostError`. */
  watch(ipFamily: IpFamily, changed: () => void, signal: AbortSignal): Promise<void>;
}

/** Longest entry that readers take, in characters. */
const longestEntry = 1 << 20;

/** Files `services.IPv4.json` and `services.IPv6.json` in a folder, which is created. */
export function folderStore(folder: string): EntryStore {
  const pathOf = (ipFamily: IpFamily): string => join(folder, nameOf(ipFamily));
  return {
    read: (ipFamily) =>
      tried(`cannot read ${pathOf(ipFamily)}`, async () => {
        const text = await readFile(pathOf(ipFamily), 'utf8').catch((error: NodeJS.ErrnoException) => {
          if (error.code === 'ENOENT') return '';
          throw error;
        });
        return parseEntries(text);
      }),
    write: (ipFamily, entries) =>
      tried(`cannot write ${pathOf(ipFamily)}`, async () => {
        const path = pathOf(ipFamily);
        if (entries.size === 0) return rm(path, { force: true });
        await mkdir(folder, { recursive: true });
        await writeFile(`${path}.new`, printEntries(entries));
        await rename(`${path}.new`, path); // readers see the old file or the new one
      }),
    refusal: ({ length }) =>
      length > longestEntry
        ? new HostError('json.entry', `an entry has ${length} characters, readers take ${longestEntry}`)
        : undefined,
    watch: (ipFamily, changed, signal) =>
      tried(`cannot watch ${folder}`, async () => {
        await mkdir(folder, { recursive: true });
        for await (const { filename } of watch(folder, { signal })) {
          if (filename === nameOf(ipFamily)) changed();
        }
      }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw error;
      }),
  };
}

function nameOf(ipFamily: IpFamily): string {
  return `services.${ipFamily}.json`;
}

async function tried<T>(attempt: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new HostError('json.file', `${attempt}: ${messageOf(cause)}`, { cause });
  }
}
