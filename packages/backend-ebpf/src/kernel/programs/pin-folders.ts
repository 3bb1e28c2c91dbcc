import { existsSync, lstatSync, mkdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { asError, HostError, type IpFamily } from '@switchyard/core';
import { isBpffs, listPins } from '@switchyard/native';

export interface PinPlace {
  readonly bpffs: string;
  readonly ipFamily: IpFamily;
  readonly version: number;
}

/**
 * Folders of one family's pinned maps and links: `<bpffs>/switchyard/v<version>-<family>/{maps,links}`. A folder `maps` always has all
 * maps: it is filled as `maps-next` and replaces the old one by renames. `settle` completes or undoes renames of a process that ended
 * between two of them. (The kernel forbids dots in names in bpffs.)
 */
export class PinFolders {
  readonly bpffs: string;
  readonly folder: string;
  readonly links: string;
  readonly maps: string;
  readonly nextMaps: string;
  readonly #oldMaps: string;
  readonly #root: string;
  readonly #suffix: string;

  constructor({ bpffs, ipFamily, version }: PinPlace) {
    this.bpffs = bpffs;
    this.#root = join(bpffs, 'switchyard');
    this.#suffix = `-${ipFamily.toLowerCase()}`;
    this.folder = join(this.#root, `v${version}${this.#suffix}`);
    this.links = join(this.folder, 'links');
    this.maps = join(this.folder, 'maps');
    this.nextMaps = join(this.folder, 'maps-next');
    this.#oldMaps = join(this.folder, 'maps-old');
  }

  /** Makes missing folders, and completes or undoes the renames of a killed process. bpffs must be mounted. */
  settle(): void {
    this.#change('prepare', () => {
      mkdirSync(this.links, { recursive: true, mode: 0o700 });
      removeTree(this.nextMaps);
      if (existsSync(this.maps)) removeTree(this.#oldMaps);
      else if (existsSync(this.#oldMaps)) renameSync(this.#oldMaps, this.maps);
    });
  }

  /** Makes an empty `maps-next`. */
  beginMaps(): void {
    this.#change('make', () => {
      removeTree(this.nextMaps);
      mkdirSync(this.nextMaps, { recursive: true, mode: 0o700 });
    });
  }

  /** Replaces `maps` by `maps-next`. */
  commitMaps(): void {
    this.#change('exchange', () => {
      if (existsSync(this.maps)) {
        removeTree(this.#oldMaps);
        renameSync(this.maps, this.#oldMaps);
      }
      renameSync(this.nextMaps, this.maps);
      removeTree(this.#oldMaps);
    });
  }

  /** Moves a pin to another path and replaces a pin there. */
  move(from: string, to: string): void {
    this.#change('move', () => renameSync(from, to));
  }

  unpin(path: string): void {
    this.#change('remove', () => {
      if (existsSync(path)) unlinkSync(path);
    });
  }

  /** Paths of the links of this version, or of another one's folder. */
  linksIn(folder: string = this.folder): readonly string[] {
    return listPins(join(folder, 'links')).map((name) => join(folder, 'links', name));
  }

  /** The family's folders of all versions but this, newest first. */
  others(): readonly string[] {
    return this.all().filter((folder) => folder !== this.folder);
  }

  /** The family's folders of all versions, newest first. */
  all(): readonly string[] {
    if (!isBpffs(this.bpffs)) return [];
    const number = (name: string): number => Number(/^v(\d+)-/.exec(name)?.[1] ?? NaN);
    return listPins(this.#root)
      .filter((name) => name.endsWith(this.#suffix) && !Number.isNaN(number(name)))
      .sort((a, b) => number(b) - number(a))
      .map((name) => join(this.#root, name));
  }

  /** Removes a folder with its pins, and its parent if that is empty then. */
  remove(folder: string): void {
    this.#change('remove', () => removeTree(folder));
    try {
      rmdirSync(dirname(folder));
    } catch {
      // It has the folder of the other family.
    }
  }

  #change(verb: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      const said = asError(error).message;
      throw new HostError('ebpf.pins', `cannot ${verb} pins below ${this.folder}: ${said}; will be tried again`, {
        cause: error,
      });
    }
  }
}

export function removeTree(path: string): void {
  for (const name of listPins(path)) {
    const inside = join(path, name);
    if (lstatSync(inside).isDirectory()) removeTree(inside);
    else unlinkSync(inside);
  }
  if (existsSync(path)) rmdirSync(path);
}
