import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../workspace.ts';
import type { AppName } from './definitions.ts';
import { nativeBinaries } from './native-binaries.ts';
import { bundledPackages, copyNpmLicences } from './npm-licences.ts';
import type { Target } from './target.ts';

/** Where an app's parts lie in an image. */
export interface AppPlaces {
  /** Below `/usr/local/lib`: its bundle. The launcher knows it too (packages/native/cpp/image_launcher.cc). */
  readonly library: string;
  /** In `/usr/local/bin`, with the launcher that each is a copy of. Empty: Node is the entry point, and there is no native addon. */
  readonly programs: Readonly<Record<string, 'switchyard-launcher' | 'switchyard-lb-haproxy'>>;
  /** Further names of programs. */
  readonly aliases: Readonly<Record<string, string>>;
  /** Files of the bundle without which it is not complete. */
  readonly entryPoints: readonly string[];
  /** Empty files, by path: what programs open and never create on a read-only root. */
  readonly emptyFiles: readonly string[];
}

/** Where each app lies in an image. */
export const appPlaces: Readonly<Record<AppName, AppPlaces>> = {
  'node-agent': {
    library: 'switchyard',
    programs: { 'switchyard-agent': 'switchyard-launcher' },
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
    entryPoints: ['pod.mjs'],
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
    for (const [name, launcher] of Object.entries(place.programs))
      await copyFile(join(native, launcher), join(programs, name));
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
