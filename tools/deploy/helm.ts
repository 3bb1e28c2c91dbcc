import { createHash } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { debianRoot } from '../debian/debian-root.ts';
import { cachedFolder, runGo, runProgram } from '../debian/run-program.ts';
import { root } from '../workspace.ts';
import { type KubeObject, parseManifests } from './kube-object.ts';

export const chart: string = join(root, 'deploy/helm/switchyard');

export interface HelmOptions {
  /** Default: `switchyard`, as the README says. */
  readonly name?: string;
  /** Default: `kube-system`, as the README says. */
  readonly namespace?: string;
  /** Over those of values.yaml. */
  readonly values?: object;
}

export interface Rendered {
  readonly objects: readonly KubeObject[];
  /** Text that Helm prints after an installation. */
  readonly notes: string;
}

/**
 * Renders our chart by Go's template engine and sprig, which are what Helm renders with; Helm itself is not on this
 * machine. Rejects with the engine's message, where Helm would refuse.
 */
export async function renderHelm(options: HelmOptions, signal: AbortSignal): Promise<Rendered> {
  const { name = 'switchyard', namespace = 'kube-system', values = {} } = options;
  const input = JSON.stringify({ name, namespace, values });
  const { stdout } = await runProgram(await helmRenderer(signal), [chart], { input, signal });
  const files = JSON.parse(stdout) as Readonly<Record<string, string>>;
  const manifests = Object.entries(files).filter(([file]) => file.endsWith('.yaml'));
  const texts = manifests.map(([file, text]) => `---\n# Source: ${file}\n${text}`);
  return { objects: parseManifests(texts.join('\n')), notes: files['templates/NOTES.txt'] ?? '' };
}

/** The compiled renderer; made when it is missing, with a Go that is unpacked for it and not installed. */
async function helmRenderer(signal: AbortSignal): Promise<string> {
  const source = join(import.meta.dirname, 'helm-render/main.go');
  const hash = createHash('sha256').update(await readFile(source));
  const compile = async (folder: string): Promise<void> => {
    const packages = ['golang-go', 'golang-github-masterminds-sprig-dev', 'golang-gopkg-yaml.v2-dev'];
    const debian = await debianRoot({ packages, exclude: ['libc6', 'perl'], signal });
    const go = { gopath: join(debian, 'usr/share/gocode'), cache: join(folder, 'cache'), signal };
    await runGo(debian, ['build', '-o', join(folder, 'helm-render'), source], go);
    await rm(go.cache, { recursive: true, force: true });
  };
  const name = `helm-${hash.digest('hex').slice(0, 16)}`;
  return join(await cachedFolder('switchyard-deploy', name, compile, signal), 'helm-render');
}
