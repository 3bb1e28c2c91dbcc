import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { root } from '../workspace.ts';
import type { AppName, DebianPrograms, Target } from './definitions.ts';
import { nativeBinaries } from './binaries.ts';
import { addPrograms } from './debian-layers.ts';

/** Where an app's parts lie in an image. */
interface AppPlaces {
  /** Below `/usr/local/lib`: its bundle. The launcher knows it too (packages/native/cpp/image_launcher.cc). */
  readonly library: string;
  /** In `/usr/local/bin`, with the compiled program that each is a copy of. Empty: Node is the entry point, and there is no native addon. */
  readonly programs: Readonly<
    Record<string, 'switchyard-launcher' | 'switchyard-lb-haproxy' | 'switchyard-drain-hook'>
  >;
  /** Further names of programs. */
  readonly aliases: Readonly<Record<string, string>>;
  /** Files of the bundle without which it is not complete. */
  readonly entryPoints: readonly string[];
  /** Empty files, by path: what programs open and never create on a read-only root. */
  readonly emptyFiles: readonly string[];
}

/** Where each app lies in an image. */
const appPlaces: Readonly<Record<AppName, AppPlaces>> = {
  'node-agent': {
    library: 'switchyard',
    programs: { 'switchyard-agent': 'switchyard-launcher', 'switchyard-drain-hook': 'switchyard-drain-hook' },
    aliases: { 'kube-proxy': 'switchyard-agent' },
    entryPoints: ['main.mjs'],
    // iptables-legacy opens it for creation; one that exists it opens on a read-only root too. A lock that really keeps
    // others out is the node's own file, which kubeadm's DaemonSet mounts over this one.
    emptyFiles: ['run/xtables.lock'],
  },
  'kind-lb-controller': {
    library: 'switchyard-lb',
    programs: { 'switchyard-lb': 'switchyard-launcher', 'switchyard-lb-haproxy': 'switchyard-lb-haproxy' },
    aliases: { 'switchyard-lb-worker': 'switchyard-lb' },
    entryPoints: ['main.mjs', 'worker.mjs'],
    emptyFiles: [],
  },
  conformance: {
    library: 'switchyard-conformance',
    programs: {},
    aliases: {},
    entryPoints: ['pod.mjs', 'run/conformance.mjs'],
    emptyFiles: [],
  },
};

/** Which app, for which machines. */
export interface AppLayerOptions {
  readonly app: AppName;
  readonly target: Target;
  readonly signal: AbortSignal;
}

/**
 * Puts an app into `layer`: its bundle, the native addon, its programs, and under which terms all that may be passed on. The addon in
 * the bundle is this machine's; the target's replaces it. Source maps stay out: Node is not told to read
 * them; and what only the ebpf mode needs, which is a layer of its own.
 */
export async function addApp(layer: string, { app, target, signal }: AppLayerOptions): Promise<void> {
  const place = appPlaces[app];
  const bundle = join(root, 'apps', app, 'dist-bundle');
  const missing = place.entryPoints.find((name) => !existsSync(join(bundle, name)));
  if (missing !== undefined) throw new Error(`${app} is not bundled (${join(bundle, missing)}): run ./dev build`);
  const [programs, library] = [join(layer, 'usr/local/bin'), join(layer, 'usr/local/lib', place.library)];
  const licences = join(layer, 'usr/share/doc', place.library);
  await mkdir(programs, { recursive: true });
  await mkdir(licences, { recursive: true });
  await cp(bundle, library, { recursive: true, filter: (path) => !/\.(map|node|bpf\.o)$/.test(path) });
  const isNative = Object.keys(place.programs).length > 0;
  if (isNative) {
    const native = await nativeBinaries(target, signal);
    await copyFile(join(native, 'switchyard_native.node'), join(library, 'switchyard_native.node'));
    for (const [name, program] of Object.entries(place.programs))
      await copyFile(join(native, program), join(programs, name));
  }
  for (const [name, program] of Object.entries(place.aliases)) await symlink(program, join(programs, name));
  for (const path of place.emptyFiles) {
    await mkdir(join(layer, path, '..'), { recursive: true });
    await writeFile(join(layer, path), '', { mode: 0o600 });
  }
  await copyFile(join(root, 'LICENSE'), join(licences, 'copyright'));
  await copyNpmLicences(await appPackages(app), join(licences, 'npm'));
}

/** Folders of the npm packages in an app: those of its bundle, and those that are compiled into its native addon. */
export async function appPackages(app: AppName): Promise<readonly string[]> {
  const isNative = Object.keys(appPlaces[app].programs).length > 0;
  const compiledIn = isNative ? ['node-addon-api', 'node-api-headers'] : [];
  const bundled = await bundledPackages(join(root, 'apps', app, 'dist-bundle'));
  return [...bundled, ...compiledIn.map((name) => join(root, 'node_modules', name))];
}

const source = join(root, 'packages/backend-ebpf');

/** BPF objects that the agent loads; one file serves every little-endian machine. */
export const bpfObjects = ['socket.bpf.o', 'wire.bpf.o'] as const;

/** libbpf, which the addon links, and what that needs; no program. */
export const ebpfLibraries: DebianPrograms = { packages: ['libbpf1'], exclude: [], programs: /^$/ };

/**
 * Puts what the ebpf mode needs into `layer`, beside the agent's bundle: the addon that speaks bpf(2), its libraries, the objects, and under
 * which terms all that may be passed on.
 */
export async function addEbpf(layer: string, target: Target, signal: AbortSignal): Promise<void> {
  const library = join(layer, 'usr/local/lib', appPlaces['node-agent'].library);
  const licence = join(layer, 'usr/share/doc', appPlaces['node-agent'].library, 'bpf');
  await mkdir(library, { recursive: true });
  await mkdir(licence, { recursive: true });
  for (const name of bpfObjects) {
    const object = join(source, 'build', name);
    if (!existsSync(object)) throw new Error(`the BPF programs are not compiled (${object}): run ./dev build`);
    await copyFile(object, join(library, name));
  }
  const native = await nativeBinaries(target, signal);
  await copyFile(join(native, 'switchyard_bpf.node'), join(library, 'switchyard_bpf.node'));
  await copyFile(join(source, 'bpf/LICENSE'), join(licence, 'copyright'));
  await addPrograms(layer, ebpfLibraries, target, signal);
}

/** Folders of the npm packages whose code is in a bundle, sorted: its source maps name every file that went in. */
export async function bundledPackages(bundle: string): Promise<readonly string[]> {
  const folders = new Set<string>();
  for (const name of await readdir(bundle, { recursive: true })) {
    if (!name.endsWith('.map')) continue;
    const { sources } = JSON.parse(await readFile(join(bundle, name), 'utf8')) as {
      readonly sources: readonly string[];
    };
    for (const source of sources) {
      const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(source) ?? [];
      if (folder !== undefined) folders.add(resolve(bundle, dirname(name), folder));
    }
  }
  return [...folders].sort();
}

/**
 * Writes the terms of npm packages to `documents/NAME-VERSION/copyright`: the package's own files, or what its package.json says
 * where it has none. Throws for a package that says nothing.
 */
export async function copyNpmLicences(packages: readonly string[], documents: string): Promise<void> {
  for (const folder of packages) {
    const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Partial<
      Record<string, string>
    >;
    const { name = '', version = '', license } = manifest;
    const target = join(documents, `${name}-${version}`, 'copyright');
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, await licenceText(folder, license));
  }
}

async function licenceText(folder: string, licence: string | undefined): Promise<string> {
  const names = (await readdir(folder)).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  if (texts.length > 0) return texts.join('\n');
  if (licence === undefined) throw new Error(`${folder}: no file and no field names a licence`);
  return `${licence}\n`;
}
