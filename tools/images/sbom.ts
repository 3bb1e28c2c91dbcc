import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageListFile } from '../debian/debian-root.ts';
import { appPackages, ebpfLibraries } from './app-layer.ts';
import { appVersion, type ImageOptions } from './build-image.ts';
import {
  type AppName,
  type DebianPrograms,
  type ImageDefinition,
  images,
  type LayerContent,
  type Target,
  targets,
} from './definitions.ts';
import { lockedPackage } from './binaries.ts';
import { programsTree } from './debian-layers.ts';

/** Something with a version that is in an image, in the form of CycloneDX. */
export interface SbomComponent {
  readonly type: 'application' | 'container' | 'library';
  readonly name: string;
  readonly version: string;
  /** Package URL: ecosystem, name, version. */
  readonly purl?: string;
  readonly licenses?: readonly { readonly expression: string }[];
}

/** A list of contents (SBOM) in the form of CycloneDX 1.5. */
export interface Sbom {
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: '1.5';
  /** A UUID made of the contents: equal contents have equal lists. */
  readonly serialNumber: string;
  readonly version: 1;
  readonly metadata: { readonly component: SbomComponent };
  readonly components: readonly SbomComponent[];
}

/**
 * Lists what an image contains: the base, Node, Debian packages, the app and its npm packages. Contents of the base are not listed.
 * Needs the bundles of this checkout. Rejects as the build of the image.
 */
export async function imageSbom(options: Omit<ImageOptions, 'docker'>): Promise<Sbom> {
  const { image, architecture, tag, base, signal } = options;
  const { layers, app }: ImageDefinition = images[image];
  const contents: SbomComponent[] = [baseComponent(base)];
  for (const content of Object.values(layers)) {
    contents.push(...(await layerComponents(content, targets[architecture], signal)));
  }
  return cycloneDx({ type: 'container', name: tag.replace(/:[^:/]*$/, ''), version: appVersion(app) }, contents);
}

/** The list of `subject`. Components that several layers have count once; the order is that of their names. */
export function cycloneDx(subject: SbomComponent, contents: readonly SbomComponent[]): Sbom {
  const byId = new Map(contents.map((one) => [one.purl ?? `${one.name} ${one.version}`, one]));
  const components = [...byId].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  const hash = createHash('sha256')
    .update(JSON.stringify([subject, components]))
    .digest('hex');
  // The digits of a UUID of version 8 (RFC 9562), whose content is free.
  const uuid = [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ];
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: `urn:uuid:${uuid.join('-')}`,
    version: 1,
    metadata: { component: subject },
    components,
  };
}

async function layerComponents(
  content: LayerContent,
  target: Target,
  signal: AbortSignal,
): Promise<readonly SbomComponent[]> {
  switch (content.kind) {
    case 'debian':
      return debianPackages(content.of, target, signal);
    case 'ebpf':
      return debianPackages(ebpfLibraries, target, signal);
    case 'node': {
      const { version } = lockedPackage(`node-linux-${target.node}`);
      return [{ type: 'application', name: 'node', version, purl: `pkg:generic/node@${version}` }];
    }
    case 'app':
      return [appComponent(content.app), ...(await npmComponents(await appPackages(content.app)))];
    case 'haproxyBase':
    case 'empty':
      return [];
  }
}

async function debianPackages(
  debian: DebianPrograms,
  target: Target,
  signal: AbortSignal,
): Promise<readonly SbomComponent[]> {
  const tree = await programsTree(debian, target, signal);
  return debianComponents(await readFile(join(tree, packageListFile), 'utf8'));
}

/** Reads lines `name version architecture`. */
export function debianComponents(list: string): readonly SbomComponent[] {
  const lines = list.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [name = '', version = '', architecture = ''] = line.split(' ');
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
    return { type: 'library', name, version, purl };
  });
}

/** Reads the manifests of npm packages. */
export async function npmComponents(folders: readonly string[]): Promise<readonly SbomComponent[]> {
  return Promise.all(
    folders.map(async (folder): Promise<SbomComponent> => {
      const manifest: unknown = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
      const { name = '', version = '', license } = manifest as Partial<Record<string, string>>;
      const purl = `pkg:npm/${name.replace('@', '%40')}@${encodeURIComponent(version)}`;
      const licenses = typeof license === 'string' ? { licenses: [{ expression: license }] } : {};
      return { type: 'library', name, version, purl, ...licenses };
    }),
  );
}

function appComponent(app: AppName): SbomComponent {
  return { type: 'application', name: app, version: appVersion(app), licenses: [{ expression: 'Apache-2.0' }] };
}

/** The image below, by its digest or its tag. */
export function baseComponent(base: string): SbomComponent {
  const [, name = base, digest, tag = 'latest'] = /^(.+?)(?:@(sha256:\w+)|:([^:/]+))?$/.exec(base) ?? [];
  return { type: 'container', name, version: digest ?? tag };
}
