import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { baseComponent, cycloneDx, debianComponents, npmComponents } from './sbom.ts';

const subject = { type: 'container', name: 'switchyard/load-balancer', version: '9.9.9' } as const;

test('Debian packages have their version and architecture in a package URL', () => {
  const list = 'haproxy 2.6.12-1+deb12u2 amd64\nlibpam-modules 1:1.5 all\n';
  assert.deepEqual(debianComponents(list), [
    {
      type: 'library',
      name: 'haproxy',
      version: '2.6.12-1+deb12u2',
      purl: 'pkg:deb/debian/haproxy@2.6.12-1%2Bdeb12u2?arch=amd64',
    },
    {
      type: 'library',
      name: 'libpam-modules',
      version: '1:1.5',
      purl: 'pkg:deb/debian/libpam-modules@1%3A1.5?arch=all',
    },
  ]);
});

test('npm packages have what their manifests say', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'swy-sbom-'));
  try {
    for (const [name, manifest] of Object.entries({
      scoped: { name: '@a/b', version: '1.2.3', license: 'MIT' },
      bare: { name: 'c', version: '0.1.0-rc.1+x' },
    })) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, 'package.json'), JSON.stringify(manifest));
    }
    assert.deepEqual(await npmComponents([join(folder, 'scoped'), join(folder, 'bare')]), [
      {
        type: 'library',
        name: '@a/b',
        version: '1.2.3',
        purl: 'pkg:npm/%40a/b@1.2.3',
        licenses: [{ expression: 'MIT' }],
      },
      { type: 'library', name: 'c', version: '0.1.0-rc.1+x', purl: 'pkg:npm/c@0.1.0-rc.1%2Bx' },
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each([
  ['gcr.io/distroless/cc-debian12', 'gcr.io/distroless/cc-debian12', 'latest'],
  ['localhost:5000/base:1.2', 'localhost:5000/base', '1.2'],
  ['localhost:5000/base', 'localhost:5000/base', 'latest'],
  ['gcr.io/base@sha256:00ff', 'gcr.io/base', 'sha256:00ff'],
])('the base %s is %s at %s', (base, name, version) => {
  assert.deepEqual(baseComponent(base), { type: 'container', name, version });
});

test('what two layers have counts once, and equal contents have equal lists', () => {
  const [a, b] = debianComponents('a 1 amd64\nb 1 amd64\n');
  assert.ok(a !== undefined && b !== undefined);
  const list = cycloneDx(subject, [b, a, b]);
  assert.deepEqual(list.components, [a, b]);
  assert.match(list.serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(cycloneDx(subject, [a, b]), list);
  assert.notEqual(cycloneDx(subject, [a]).serialNumber, list.serialNumber);
});
