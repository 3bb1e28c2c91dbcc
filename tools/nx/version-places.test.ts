import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { root, workspaces } from '../workspace.ts';
import { replaceVersion, versionPlaces } from './version-places.ts';

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
/** Versions that tests make up. */
const examples = new Set(['e2e/test/unit/cell-run.test.ts 1.2.3', 'tools/images/images.test.ts 9.9.9']);

test('every place names the version of the root package.json', () => {
  const places = versionPlaces(root).filter((one) => !examples.has(`${one.path} ${one.version}`));
  expect(places.filter((one) => one.version !== version)).toEqual([]);
  const found = new Set(places.map(({ path }) => path));
  for (const { folder } of workspaces()) expect(found).toContain(`${folder}/package.json`);
  for (const path of [
    'package.json',
    'apps/node-agent/src/version.ts',
    'apps/kind-lb-controller/src/version.ts',
    'apps/conformance/src/model/report-file.ts',
    'apps/conformance/src/cluster/open-cluster-environment.ts',
    'deploy/helm/switchyard/Chart.yaml',
    'deploy/kustomize/overlays/replace-kubeadm/kustomization.yaml',
    'docs/operate/migrate.md',
  ]) {
    expect(found).toContain(path);
  }
});

const folder = mkdtempSync(join(tmpdir(), 'version-places-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a release replaces the old version and leaves other numbers', () => {
  const image = ['switchyard', 'agent-nftables'].join('/');
  const before = {
    'a/package.json':
      '{\n  "version": "1.2.0",\n  "dependencies": {\n    "@switchyard/core": "1.2.0",\n    "yaml": "1.2.0"\n  }\n}\n',
    'chart/Chart.yaml': 'apiVersion: v2\nversion: 1.2.0\nappVersion: 1.2.0\nkubeVersion: 1.2.0\n',
    'k/kustomization.yaml': 'images:\n  - newTag: 1.2.0\n    newTag: 1.2.0\n',
    'src/version.ts': "export const version = '1.2.0';\nexport const other = '1.2.0';\n",
    'page.md': `Load ${image}:1.2.0. Not ${image}:11.2.0, 1.2.0.\n1.2.0 is a number. ${image}:1.1.0\n`,
    'package-lock.json': '{ "version": "1.2.0" }\n',
  };
  for (const [path, text] of Object.entries(before)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  execFileSync('git', ['init', '--quiet'], { cwd: folder });
  execFileSync('git', ['add', '.'], { cwd: folder });
  expect(replaceVersion(folder, '1.2.0', '1.3.0-rc.1')).toEqual([
    'a/package.json',
    'chart/Chart.yaml',
    'k/kustomization.yaml',
    'page.md',
    'src/version.ts',
  ]);
  const after = (path: string): string => readFileSync(join(folder, path), 'utf8');
  expect(after('a/package.json')).toContain('"version": "1.3.0-rc.1"');
  expect(after('a/package.json')).toContain('"@switchyard/core": "1.3.0-rc.1",\n    "yaml": "1.2.0"');
  expect(after('chart/Chart.yaml')).toBe(
    'apiVersion: v2\nversion: 1.3.0-rc.1\nappVersion: 1.3.0-rc.1\nkubeVersion: 1.2.0\n',
  );
  expect(after('k/kustomization.yaml')).toBe('images:\n  - newTag: 1.2.0\n    newTag: 1.3.0-rc.1\n');
  expect(after('src/version.ts')).toBe("export const version = '1.3.0-rc.1';\nexport const other = '1.2.0';\n");
  expect(after('page.md')).toContain(`${image}:1.3.0-rc.1`);
  expect(after('page.md')).toContain(`${image}:11.2.0`);
  expect(after('page.md')).toContain(`1.2.0 is a number. ${image}:1.1.0`);
  expect(after('package-lock.json')).toBe(before['package-lock.json']);
  expect(versionPlaces(folder)).toContainEqual({ path: 'chart/Chart.yaml', line: 2, version: '1.3.0-rc.1' });
});
