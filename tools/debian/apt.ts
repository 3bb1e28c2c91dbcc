import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram, type Output } from './run-program.ts';

/** Debian's names of the architectures we build for. */
export type DebianArchitecture = 'amd64' | 'arm64';

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  /** `all` or an architecture. */
  readonly architecture: string;
}

/** apt with this machine's sources and keys, but a state of its own in which no package is installed. */
export interface Apt {
  readonly architecture: DebianArchitecture;
  hasLists(): Promise<boolean>;
  /** Fetches the sources' lists of packages. Returns what apt says about sources that it could not reach. */
  update(signal: AbortSignal): Promise<string>;
  /** The packages and everything they depend on, sorted by name. */
  resolve(packages: readonly string[], signal: AbortSignal): Promise<readonly DebianPackage[]>;
  /** Downloads the `.deb` files into a folder and checks them against the signed lists. */
  download(packages: readonly DebianPackage[], folder: string, signal: AbortSignal): Promise<void>;
}

/** Folder, architecture and sources of a private apt. */
export interface AptOptions {
  /** Where its state lives; made if missing. */
  readonly folder: string;
  readonly architecture: DebianArchitecture;
  /** Packages that count as installed, in a version that satisfies every dependency. */
  readonly exclude: readonly string[];
  /** A suite of Debian's own mirror, such as `trixie`, in the place of this machine's sources. */
  readonly suite?: string;
}

/** Prepares apt's private folder. One user at a time: the callers lock. */
export async function openApt({ folder, architecture, exclude, suite }: AptOptions): Promise<Apt> {
  await mkdir(join(folder, 'lists/partial'), { recursive: true });
  await mkdir(join(folder, 'cache/archives/partial'), { recursive: true });
  await writeFile(join(folder, 'status'), exclude.map((name) => installed(name, architecture)).join('\n'));
  const settings = join(folder, 'apt.conf');
  if (suite !== undefined)
    await writeFile(join(folder, 'sources.list'), `deb [signed-by=${keyring}] ${await mirror()} ${suite} main\n`);
  await writeFile(settings, aptSettings(folder, architecture) + (suite === undefined ? '' : suiteSettings(folder)));
  const apt = (args: readonly string[], signal: AbortSignal, cwd: string = folder): Promise<Output> =>
    runProgram('apt-get', ['-c', settings, '-q', '-y', ...args], { cwd, signal });
  return {
    architecture,
    hasLists: async () => (await readdir(join(folder, 'lists'))).some((name) => name.includes('_Packages')),
    update: async (signal) => (await apt(['update'], signal)).stderr,
    resolve: async (packages, signal) => {
      const wanted = ['--simulate', '--no-install-recommends', 'install', ...packages];
      return parseSimulation((await apt(wanted, signal)).stdout);
    },
    download: async (packages, target, signal) => {
      const names = packages.map((one) => `${one.name}=${one.version}`);
      await apt(['download', ...names], signal, target);
    },
  };
}

/** Reads `Inst name (version source [architecture])` lines of `apt-get --simulate install`. */
export function parseSimulation(text: string): readonly DebianPackage[] {
  const found = [...text.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) .*\[(\S+)\]\)/gm)];
  return found
    .map(([, name = '', version = '', architecture = '']) => ({
      name: name.split(':')[0] ?? '',
      version,
      architecture,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Keys that sign Debian's suites; a machine of the previous release already has the next one's keys. */
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** The Debian mirror of this machine, which may reach no other one. */
async function mirror(): Promise<string> {
  const folder = '/etc/apt/sources.list.d';
  const files = (await readdir(folder).catch(() => [])).map((name) => join(folder, name));
  const texts = await Promise.all(
    ['/etc/apt/sources.list', ...files].map((file) => readFile(file, 'utf8').catch(() => '')),
  );
  return mirrorIn(texts.join('\n')) ?? 'http://deb.debian.org/debian';
}

/** The first mirror of Debian itself that apt's sources name, in either of their forms. */
export function mirrorIn(sources: string): string | undefined {
  const uses = sources.split('\n').filter((line) => /^\s*(deb|URIs:)\s/.test(line));
  return /(?:https?|file):\/\/\S+\/debian\/?(?=\s|$)/.exec(uses.join('\n'))?.[0];
}

/** Sources of one suite instead of the machine's. */
function suiteSettings(folder: string): string {
  return `Dir::Etc::SourceList "${folder}/sources.list";
Dir::Etc::SourceParts "/dev/null";
`;
}

/**
 * Read after the machine's own settings, so that these win. The hooks are cleared because they act on the machine: they
 * empty its cache or notify its desktop.
 */
function aptSettings(folder: string, architecture: DebianArchitecture): string {
  return `Dir::State "${folder}";
Dir::State::lists "${folder}/lists";
Dir::State::status "${folder}/status";
Dir::Cache "${folder}/cache";
#clear APT::Architectures;
APT::Architecture "${architecture}";
APT::Architectures { "${architecture}"; };
APT::Sandbox::User "root";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "1";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
`;
}

function installed(name: string, architecture: DebianArchitecture): string {
  return `Package: ${name}
Status: install ok installed
Priority: optional
Section: misc
Maintainer: none
Architecture: ${architecture}
Multi-Arch: foreign
Version: 9999
Description: left out
`;
}
