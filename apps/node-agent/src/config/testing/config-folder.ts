import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of real files for one test. */
export class ConfigFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<ConfigFolder> {
    return new ConfigFolder(await mkdtemp(join(tmpdir(), 'switchyard-config-')));
  }

  /** Writes a file in place; resolves with its path. */
  async write(name: string, text: string): Promise<string> {
    const path = join(this.path, name);
    await writeFile(path, text);
    return path;
  }

  /**
   * Publishes files as the kubelet does with a ConfigMap's volume: a folder with the new files, and one rename that
   * points the link `..data` to it. Resolves with the path of `name`, a link through `..data`.
   */
  async publish(version: string, name: string, text: string): Promise<string> {
    const folder = `..${version}`;
    await mkdir(join(this.path, folder));
    await writeFile(join(this.path, folder, name), text);
    await symlink(folder, join(this.path, '..data_tmp'));
    await rename(join(this.path, '..data_tmp'), join(this.path, '..data'));
    const path = join(this.path, name);
    await symlink(join('..data', name), path).catch(() => undefined); // there since the first version
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true });
  }
}
