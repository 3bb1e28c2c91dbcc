import { messageOf } from '../base/errors.ts';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type ManifestFault, type ManifestNote, type ManifestObject, readManifest } from './read-manifest.ts';
import type { Logger } from '../base/log.ts';

/** A present fault of a file. */
interface FileFault extends ManifestFault {
  /** Full path. */
  readonly file: string;
}

/** State of the folder after a scan. */
interface FolderState {
  /** Objects in force by `resource name`: the newest valid content of each file. */
  readonly objects: ReadonlyMap<string, ManifestObject>;
  /** Faults, sorted by file; empty when all files are valid. */
  readonly faults: readonly FileFault[];
  readonly notes: readonly (ManifestNote & { readonly file: string })[];
}

interface KnownFile {
  /** Changes whenever the content may have changed. */
  stamp: string;
  /** Objects of the newest content; undefined when it has faults. */
  wanted: readonly ManifestObject[] | undefined;
  faults: readonly ManifestFault[];
  notes: readonly ManifestNote[];
  /** Objects in force. */
  accepted: readonly ManifestObject[];
}

/**
 * Files of one folder (`.yaml`, `.yml`, `.json`; not hidden, no subfolders), read again only when they
 * changed. A file is accepted as a whole: while it is faulty, or defines an object of another file, its last
 * valid content stays in force.
 */
export class ManifestFolder {
  readonly #path: string;
  readonly #files = new Map<string, KnownFile>();

  constructor(path: string) {
    this.#path = path;
  }

  /** Checks every file. Rejects with the system's error if the folder cannot be read; the state stays then. */
  async scan(): Promise<FolderState> {
    const names = (await readdir(this.#path)).filter((name) => /^[^.].*\.(?:ya?ml|json)$/i.test(name)).sort();
    for (const known of this.#files.keys()) if (!names.includes(known)) this.#files.delete(known);
    for (const name of names) await this.#read(name);
    return this.#settle();
  }

  async #read(name: string): Promise<void> {
    const path = join(this.#path, name);
    const known = this.#files.get(name);
    try {
      const { ctimeNs, dev, ino, mtimeNs, size } = await stat(path, { bigint: true });
      const stamp = [dev, ino, size, mtimeNs, ctimeNs].join(' ');
      if (known?.stamp === stamp) return;
      const { faults, notes, objects } = readManifest(await readFile(path, 'utf8'));
      this.#files.set(name, {
        stamp,
        faults,
        notes,
        wanted: faults.length > 0 ? undefined : objects,
        accepted: known?.accepted ?? [],
      });
    } catch (error) {
      const message = messageOf(error);
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
        this.#files.delete(name); // deleted since the listing
        return;
      }
      const faults = [{ line: 1, column: 1, message: `cannot be read: ${message}` }];
      this.#files.set(name, { stamp: '', faults, notes: [], wanted: undefined, accepted: known?.accepted ?? [] });
    }
  }

  /** Decides which content of each file is in force. */
  #settle(): FolderState {
    const refused = this.#refuseConflicts();
    const objects = new Map<string, ManifestObject>();
    const faults: FileFault[] = [];
    const notes: (ManifestNote & { file: string })[] = [];
    for (const name of [...this.#files.keys()].sort()) {
      const known = this.#files.get(name);
      if (known === undefined) continue;
      const file = join(this.#path, name);
      const conflict = refused.get(name);
      if (known.wanted !== undefined && conflict === undefined) known.accepted = known.wanted;
      for (const object of known.accepted) objects.set(keyOf(object), object);
      faults.push(...[...known.faults, ...(conflict ?? [])].map((fault) => ({ ...fault, file })));
      notes.push(...known.notes.map((note) => ({ ...note, file })));
    }
    return { objects, faults, notes };
  }

  /**
   * An object belongs to the file that has it in force and still wants it, else to the first file by name
   * that wants it. A file that wants an object of another file is refused and falls back to its last valid
   * content. Other files may conflict then, so it is repeated until nothing changes.
   */
  #refuseConflicts(): ReadonlyMap<string, readonly ManifestFault[]> {
    const refused = new Map<string, readonly ManifestFault[]>();
    const files = [...this.#files].sort(([a], [b]) => (a < b ? -1 : 1));
    for (;;) {
      const wantedOf = (name: string, file: KnownFile): readonly ManifestObject[] =>
        refused.has(name) ? file.accepted : (file.wanted ?? file.accepted);
      const owners = new Map<string, { readonly name: string; readonly line: number }>();
      const claim = (name: string, object: ManifestObject): void => {
        if (!owners.has(keyOf(object))) owners.set(keyOf(object), { name, line: object.line });
      };
      for (const [name, file] of files) {
        const inForce = new Set(file.accepted.map(keyOf));
        for (const object of wantedOf(name, file)) if (inForce.has(keyOf(object))) claim(name, object);
      }
      for (const [name, file] of files) for (const object of wantedOf(name, file)) claim(name, object);
      const before = refused.size;
      for (const [name, file] of files) {
        const conflicts = wantedOf(name, file).flatMap((object) => {
          const owner = owners.get(keyOf(object));
          if (owner === undefined || owner.name === name) return [];
          const where = `${join(this.#path, owner.name)}:${owner.line}`;
          return [{ line: object.line, column: 1, message: `${keyOf(object)} is already defined in ${where}` }];
        });
        if (conflicts.length > 0) refused.set(name, conflicts);
      }
      if (refused.size === before) return refused;
    }
  }
}

function keyOf({ resource, name }: ManifestObject): string {
  return `${resource} ${name}`;
}

/** Limit of logged faults of one file; the others are counted. */
const maxNamed = 5;

/** Logs changes between scans: new faults, and files that are valid again. */
export class ManifestReport {
  readonly #log: Logger;
  /** Last logged faults, by file. */
  readonly #faults = new Map<string, string>();
  readonly #topics = new Set<string>();
  #isUnreadable = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Notes a complete scan. */
  scanned({ faults, notes }: FolderState): void {
    if (this.#isUnreadable) this.#log.info('the manifest folder can be read again');
    this.#isUnreadable = false;
    const byFile = Map.groupBy(faults, ({ file }) => file);
    for (const file of this.#faults.keys()) {
      if (byFile.has(file)) continue;
      this.#faults.delete(file);
      this.#log.info('manifest has no faults any more', { file });
    }
    for (const [file, all] of byFile) this.#fileFaults(file, all);
    for (const { file, line, message, topic } of notes) {
      if (this.#topics.has(topic)) continue;
      this.#topics.add(topic);
      this.#log.warn('manifest object is not used', { file, line, reason: message });
    }
  }

  /** Notes that the folder could not be read. */
  unreadable(folder: string, error: unknown): void {
    if (this.#isUnreadable) return;
    this.#isUnreadable = true;
    this.#log.error('cannot read the manifest folder; its last content stays in force', { folder, error });
  }

  #fileFaults(file: string, faults: readonly FileFault[]): void {
    const text = JSON.stringify(faults);
    if (this.#faults.get(file) === text) return;
    this.#faults.set(file, text);
    for (const { column, line, message } of faults.slice(0, maxNamed)) {
      this.#log.error('manifest is faulty; its last valid content stays in force', {
        file,
        line,
        column,
        error: message,
      });
    }
    const more = faults.length - maxNamed;
    if (more > 0) this.#log.error('manifest has more faults', { file, more });
  }
}
