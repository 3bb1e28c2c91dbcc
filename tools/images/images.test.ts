import assert from 'node:assert/strict';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../workspace.ts';
import { imageBackends, isImageBackend } from './backends.ts';
import { agentVersion, defaultTag } from './build-image.ts';
import { describeImage } from './describe.ts';
import { nameLayers } from './docker.ts';
import { bundledPackages, copyNpmLicences } from './npm-licences.ts';

test("the image's launcher gives Node the flags and the setting of the checkout's launcher", () => {
  const shell = readFileSync(join(root, 'apps/node-agent/bin/switchyard-agent'), 'utf8');
  const native = readFileSync(join(root, 'packages/native/cpp/image_launcher.cc'), 'utf8');
  const wanted = /exec "\$node" (--.*) "\$bundle" "\$@"/.exec(shell)?.[1]?.split(' ');
  const found = /kFlags\[\] = \{(.*?)\}/s.exec(native)?.[1]?.match(/--[\w=-]+/g);
  assert.ok(wanted !== undefined && wanted.length > 0);
  assert.deepEqual([...(found ?? [])], wanted);
  assert.match(shell, /MALLOC_ARENA_MAX=1/);
  assert.match(native, /"MALLOC_ARENA_MAX", "1"/);
});

test('the manifests, the chart and the pages name what ./dev image builds by default', () => {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  const overlays = globSync('deploy/kustomize/overlays/*/kustomization.yaml', { cwd: root });
  const images = overlays.flatMap((path) => [...read(path).matchAll(/newName: (.*)\n +newTag: (.*)/g)]);
  assert.ok(images.length >= 4);
  const tags = Object.keys(imageBackends)
    .filter(isImageBackend)
    .map((backend) => defaultTag(backend));
  assert.deepEqual(new Set(images.map(([, name, tag]) => `${name}:${tag}`)), new Set(tags));
  assert.match(read('deploy/helm/switchyard/Chart.yaml'), new RegExp(`^appVersion: ${agentVersion()}$`, 'm'));
  for (const page of ['docs/migrate-from-kube-proxy.md', 'deploy/README.md']) {
    const names = read(page).match(/switchyard\/agent-[\w.:-]*\w/g) ?? [];
    assert.deepEqual(new Set(names), new Set(tags), page);
  }
  assert.equal(defaultTag('nftables', 'arm64'), `${defaultTag('nftables')}-arm64`);
});

test('layers are named from the top, and what lies below is the base', () => {
  assert.deepEqual(nameLayers([0, 30, 0, 20, 0, 10, 5], ['node', 'agent']), [
    { name: 'base', size: 5 },
    { name: 'base', size: 10 },
    { name: 'node', size: 20 },
    { name: 'agent', size: 30 },
  ]);
});

test('an image is described by its size and its layers', () => {
  const layers = nameLayers([1_500_000, 126_000_000], ['node', 'agent']);
  assert.equal(
    describeImage({ tag: 'a:1', id: `sha256:${'0'.repeat(64)}`, size: 127_500_000, layers }),
    'a:1 (sha256:000000000000): 127.5 MB, unpacked\n   126.0 MB  node\n     1.5 MB  agent',
  );
});

test('the terms of every npm package in the bundle come along', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'swy-licences-'));
  try {
    const write = (path: string, text: string): void => {
      mkdirSync(join(folder, path, '..'), { recursive: true });
      writeFileSync(join(folder, path), text);
    };
    const sources = ['../src/main.ts', '../node_modules/@a/b/x.js', '../node_modules/c/node_modules/d/y/z.js'];
    write('bundle/main.mjs.map', JSON.stringify({ sources }));
    write('node_modules/@a/b/package.json', JSON.stringify({ name: '@a/b', version: '1.0.0', license: 'MIT' }));
    write('node_modules/@a/b/LICENSE.md', 'as you like');
    write('node_modules/@a/b/NOTICE', 'by a');
    write(
      'node_modules/c/node_modules/d/package.json',
      JSON.stringify({ name: 'd', version: '2.0.0', license: 'ISC' }),
    );
    const packages = await bundledPackages(join(folder, 'bundle'));
    await copyNpmLicences(packages, join(folder, 'doc'));
    assert.equal(readFileSync(join(folder, 'doc/@a/b-1.0.0/copyright'), 'utf8'), 'as you like\nby a');
    assert.equal(readFileSync(join(folder, 'doc/d-2.0.0/copyright'), 'utf8'), 'ISC\n');
    assert.equal(packages.length, 2);
    write('node_modules/c/node_modules/d/package.json', JSON.stringify({ name: 'd', version: '2.0.0' }));
    await assert.rejects(copyNpmLicences(packages, join(folder, 'doc')), /no file and no field names a licence/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
