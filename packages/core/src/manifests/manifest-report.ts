import type { Logger } from '../base/log.ts';
import type { FileFault, FolderState } from './manifest-folder.ts';

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
