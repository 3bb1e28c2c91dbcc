import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root as checkout } from '../workspace.ts';
import { type Apt, type DebianArchitecture, openApt } from './apt.ts';
import { runProgram, withFileLock } from './run-program.ts';

export type { DebianArchitecture } from './apt.ts';

/** Which Debian packages are wanted, and for which kind of machine. */
export interface DebianRootOptions {
  /** Names as Debian calls them, for example `docker.io`. What they depend on comes too; recommendations do not. */
  readonly packages: readonly string[];
  /** Packages that count as installed, with all that only they need. Default: none. */
  readonly exclude?: readonly string[];
  /** This machine's, if not given. */
  readonly architecture?: DebianArchitecture;
  /** A suite of Debian's mirror, such as `trixie`, for what this machine's sources lack; its programs may want another C library. */
  readonly suite?: string;
  /** Where the unpacked trees and apt's lists are kept; this checkout's `node_modules/.cache/switchyard-debian`, if not given. */
  readonly cache?: string;
  /** Receives progress line by line. Default: stderr. Not called when the tree exists already. */
  readonly progress?: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Name of the file, inside the tree, that lists its packages as `name version architecture`, one per line. */
export const packageListFile = '.switchyard-packages.txt';

/** Raise it when trees that were unpacked before can no longer be used. */
const format = 1;

/**
 * Absolute path of a folder in which the packages are unpacked as they would lie in `/`. Needs neither root nor any
 * change to this machine: no package is installed, no maintainer script runs, no service starts. The sources, keys and
 * proxies are those apt is configured with here, and apt checks the signatures. The folder is shared: never write to it.
 *
 * Kept from one call to the next, and complete whenever it exists; calls at the same time, by other processes too, wait
 * for each other. Downloads are tried twice, with fresh lists the second time. Rejects with apt's own words.
 */
export async function debianRoot(options: DebianRootOptions): Promise<string> {
  const architecture = options.architecture ?? machineArchitecture();
  const packages = sorted(options.packages);
  const exclude = sorted(options.exclude ?? []);
  const { suite } = options;
  const cache = options.cache ?? join(checkout, 'node_modules/.cache/switchyard-debian');
  const folder = join(cache, requestKey({ packages, exclude, architecture, suite }));
  if (existsSync(folder)) return folder;
  await mkdir(cache, { recursive: true });
  await withFileLock(
    join(cache, 'lock'),
    async () => {
      if (existsSync(folder)) return;
      const progress = options.progress ?? ((line) => void process.stderr.write(`${line}\n`));
      progress(`debian: fetching ${packages.join(' ')} for ${architecture}, and what they depend on`);
      const state = join(cache, `apt-${architecture}${suite === undefined ? '' : `-${suite}`}`);
      const apt = await openApt({ folder: state, architecture, exclude, ...(suite === undefined ? {} : { suite }) });
      await fetchAndUnpack({ apt, packages, folder, progress, signal: options.signal });
    },
    options.signal,
  );
  return folder;
}

/** Debian's name for the architecture of the running process. */
export function machineArchitecture(): DebianArchitecture {
  if (process.arch === 'x64') return 'amd64';
  if (process.arch === 'arm64') return 'arm64';
  throw new Error(`debian: no packages for ${process.arch}, only for x64 (amd64) and arm64`);
}

interface Request {
  readonly packages: readonly string[];
  readonly exclude: readonly string[];
  readonly architecture: DebianArchitecture;
  readonly suite: string | undefined;
}

/** Another release of the distribution, after an upgrade of this machine, is another tree. */
function requestKey(request: Request): string {
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  const codename = /^VERSION_CODENAME=(.*)$/m.exec(release)?.[1] ?? '';
  const suite = request.suite === undefined ? [] : [request.suite];
  const text = JSON.stringify([format, codename, request.architecture, request.packages, request.exclude, ...suite]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

interface Fetch {
  readonly apt: Apt;
  readonly packages: readonly string[];
  readonly folder: string;
  readonly progress: (line: string) => void;
  readonly signal: AbortSignal;
}

async function fetchAndUnpack(fetch: Fetch): Promise<void> {
  const { apt, folder, progress, signal } = fetch;
  const [downloads, tree] = [`${folder}.downloads`, `${folder}.partial`];
  try {
    const found = await resolveAndDownload(fetch, downloads);
    await emptyFolder(tree);
    const files = (await readdir(downloads)).filter((name) => name.endsWith('.deb')).sort();
    for (const file of files) await runProgram('dpkg-deb', ['-x', join(downloads, file), tree], { signal });
    await writeFile(
      join(tree, packageListFile),
      found.map((one) => `${one.name} ${one.version} ${one.architecture}\n`).join(''),
    );
    await rename(tree, folder);
    progress(`debian: unpacked ${files.length} packages for ${apt.architecture} into ${folder}`);
  } finally {
    await rm(downloads, { recursive: true, force: true });
    await rm(tree, { recursive: true, force: true });
  }
}

/** The lists are kept; a version that a mirror has replaced since then is found in fresh ones. */
async function resolveAndDownload(fetch: Fetch, downloads: string): ReturnType<Apt['resolve']> {
  const { apt, packages, progress, signal } = fetch;
  const attempt = async (): ReturnType<Apt['resolve']> => {
    const found = await apt.resolve(packages, signal);
    await emptyFolder(downloads);
    await apt.download(found, downloads, signal);
    return found;
  };
  try {
    if (!(await apt.hasLists())) await apt.update(signal);
    return await attempt();
  } catch (error) {
    signal.throwIfAborted();
    progress(`debian: ${firstLine(error)}; once more, with fresh lists`);
    const complaints = await apt.update(signal);
    try {
      return await attempt();
    } catch (cause) {
      throw new Error(`debian: ${messageOf(cause)}\n${complaints}`.trim(), { cause });
    }
  }
}

async function emptyFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function firstLine(error: unknown): string {
  return messageOf(error).split('\n')[0] ?? '';
}

function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}
