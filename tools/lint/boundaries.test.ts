import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { test } from 'vitest';
import { findBoundaryFaults } from './boundaries.ts';

interface Package {
  readonly layer: string;
  readonly dependencies?: readonly string[];
  readonly devDependencies?: readonly string[];
  /** Folders its tsconfig.json refers to; those of its dependencies unless said otherwise. */
  readonly references?: readonly string[];
}

const packages: Readonly<Record<string, Package>> = {
  'packages/core': { layer: 'core' },
  'packages/host': { layer: 'host', dependencies: ['core'] },
  'packages/lab': { layer: 'lab', dependencies: ['core', 'yaml'] },
  'packages/backend-a': { layer: 'backend', dependencies: ['core', 'host'], devDependencies: ['lab'] },
  'packages/backend-b': { layer: 'backend', dependencies: ['core'] },
  'packages/scenarios': { layer: 'scenarios', dependencies: ['core', 'backend-a'] },
  'apps/agent': { layer: 'app', dependencies: ['core', 'backend-a'] },
};

/** The faults of a checkout made of `packages`, changed by `changes`, with these sources. */
function faultsOf(
  sources: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, Package>> = {},
): readonly string[] {
  const checkout = mkdtempSync(join(tmpdir(), 'swy-boundaries-'));
  const write = (path: string, text: string): void => {
    mkdirSync(join(checkout, dirname(path)), { recursive: true });
    writeFileSync(join(checkout, path), text);
  };
  try {
    for (const [folder, content] of Object.entries({ ...packages, ...changes })) {
      write(`${folder}/package.json`, JSON.stringify(manifest(folder, content)));
      write(`${folder}/tsconfig.json`, JSON.stringify({ references: references(folder, content) }));
    }
    for (const [path, text] of Object.entries(sources)) write(path, text);
    return findBoundaryFaults(checkout);
  } finally {
    rmSync(checkout, { recursive: true });
  }
}

const folderOf = (name: string): string | undefined => Object.keys(packages).find((folder) => folder.endsWith(name));
const fullName = (name: string): string => (folderOf(name) === undefined ? name : `@x/${name}`);

function manifest(folder: string, { layer, dependencies = [], devDependencies = [] }: Package): unknown {
  const versions = (names: readonly string[]): unknown =>
    Object.fromEntries(names.map((name) => [fullName(name), '0.0.0']));
  return {
    name: `@x/${folder.slice(folder.indexOf('/') + 1)}`,
    dependencies: versions(dependencies),
    devDependencies: versions(devDependencies),
    nx: { tags: [`layer:${layer}`] },
  };
}

function references(folder: string, { dependencies = [], devDependencies = [], references }: Package): unknown {
  const folders =
    references ?? [...dependencies, ...devDependencies].map(folderOf).filter((found) => found !== undefined);
  return folders.map((target) => ({ path: relative(folder, target) }));
}

test('a checkout that keeps the rules has no faults', () => {
  const sources = {
    'packages/backend-a/src/a.ts':
      "import { x } from '@x/core';\nimport { y } from '@x/host';\nimport fs from 'node:fs';",
    'packages/backend-a/src/a.test.ts': "import { test } from 'vitest';\nimport { up } from '@x/lab';",
    'packages/backend-a/src/b.ts':
      "export { x } from './a.ts';\n// import { up } from '@x/lab';\nconst text = `\nimport '@x/lab'`;",
    'packages/lab/src/a.ts': "import { parse } from 'yaml';",
    'apps/agent/src/a.ts': "const { a } = await import('@x/backend-a');",
  };
  assert.deepEqual(faultsOf(sources), []);
});

// Each row: what it shows; where the import stands; the line; the fault, or undefined where it is allowed.
const imports: readonly (readonly [string, string, string, RegExp | undefined])[] = [
  [
    'production code may not use what only tests may',
    'packages/backend-a/src/a.ts',
    "import '@x/lab';",
    /@x\/lab is not a dependency/,
  ],
  [
    'an import that is not declared',
    'packages/backend-b/src/a.ts',
    "import { y } from '@x/host';",
    /@x\/host is not a dependency of @x\/backend-b/,
  ],
  [
    'an import over several lines',
    'packages/backend-b/src/a.ts',
    "import {\n  y,\n} from '@x/host';",
    /@x\/host is not a dependency/,
  ],
  ['a type import', 'packages/core/src/a.ts', "import type { y } from '@x/host';", /@x\/host is not a dependency/],
  ['an export from', 'packages/core/src/a.ts', "export * from '@x/host';", /@x\/host is not a dependency/],
  [
    'an import at run time',
    'packages/core/src/a.ts',
    "const y = await import('@x/host');",
    /@x\/host is not a dependency/,
  ],
  ['a path below a package', 'packages/core/src/a.ts', "import '@x/host/testing';", /@x\/host is not a dependency/],
  [
    'an import that leaves the package',
    'packages/backend-b/src/a.ts',
    "import { y } from '../../host/src/y.ts';",
    /leaves the package/,
  ],
  [
    'a package whose name begins the same is another package',
    'packages/host/src/a.ts',
    "import { y } from '../../host-two/src/y.ts';",
    /leaves the package/,
  ],
  [
    'a test that reaches into another package',
    'packages/backend-b/test/privileged/a.test.ts',
    "import { y } from '../../../host/src/y.ts';",
    /leaves the package/,
  ],
  [
    'the shared vitest configuration may be reached',
    'packages/backend-b/vitest.config.ts',
    "import { vitestConfig } from '../../vitest.config.base.ts';",
    undefined,
  ],
  [
    'a tool that brings programs may be reached by a test',
    'packages/backend-b/test/privileged/a.test.ts',
    "import { debianRoot } from '../../../../tools/debian/debian-root.ts';",
    undefined,
  ],
  [
    'but not by production code',
    'packages/backend-b/src/a.ts',
    "import { debianRoot } from '../../../tools/debian/debian-root.ts';",
    /leaves the package/,
  ],
  [
    'an external package outside its owner',
    'packages/host/src/a.ts',
    "import { parse } from 'yaml';",
    /only packages\/core\/src\/manifests\/, .* may import yaml/,
  ],
  ['an external package that is not declared', 'packages/core/src/a.ts', "import 'ipaddr.js';", /ipaddr.js is not a/],
  ['a test library in production code', 'packages/core/src/a.ts', "import 'fast-check';", /fast-check is not a/],
  [
    'a value of a backend that code without kernels may know',
    'packages/scenarios/src/a.ts',
    "import { aTraits } from '@x/backend-a/traits';",
    undefined,
  ],
  [
    'the backend itself',
    'packages/scenarios/src/a.ts',
    "import { a } from '@x/backend-a';",
    /layer scenarios may import only traits of @x\/backend-a/,
  ],
  [
    'inside core, against the order',
    'packages/core/src/model/ip/a.ts',
    "import { b } from '../policy/b.ts';",
    /model\/ip may not import model\/policy/,
  ],
  ['inside core, in the order', 'packages/core/src/model/policy/a.ts', "import { b } from '../ip/b.ts';", undefined],
  [
    'inside core, a type against the order',
    'packages/core/src/model/ip/a.ts',
    "import type { B } from '../policy/b.ts';",
    undefined,
  ],
  [
    'inside core, an edge from the pure part',
    'packages/core/src/model/policy/a.ts',
    "import { b } from '../../kubernetes/b.ts';",
    /core\/model\/policy may not import core\/kubernetes/,
  ],
  [
    'inside a backend, what renders asks no kernel',
    'packages/backend-a/src/render/a.ts',
    "import { b } from '../kernel/b.ts';",
    /render may not import kernel/,
  ],
  [
    'inside a backend, no room imports what puts the rooms together',
    'packages/backend-a/src/watch/a.ts',
    "import { b } from '../backend.ts';",
    /watch may not import what puts the rooms together/,
  ],
  [
    'inside a backend, in the order',
    'packages/backend-a/src/watch/a.ts',
    "import { b } from '../kernel/b.ts';",
    undefined,
  ],
];

for (const [title, path, line, expected] of imports) {
  test(`imports: ${title}`, () => {
    const faults = faultsOf({ [path]: `${line}\n` });
    if (expected === undefined) return assert.deepEqual(faults, []);
    assert.equal(faults.length, 1, faults.join('\n'));
    assert.match(faults[0] ?? '', expected);
    assert.ok(faults[0]?.startsWith(`${path}: import of '`), faults[0]);
  });
}

const manifests: readonly (readonly [string, string, Package, RegExp])[] = [
  [
    'a layer that is wrong',
    'packages/core',
    { layer: 'core', dependencies: ['host'] },
    /layer core may not depend on @x\/host \(host\)/,
  ],
  [
    'one backend on another',
    'packages/backend-b',
    { layer: 'backend', dependencies: ['core', 'backend-a'] },
    /layer backend may not depend on @x\/backend-a \(backend\)/,
  ],
  [
    'an unknown layer',
    'packages/backend-b',
    { layer: 'surprise', dependencies: ['core'] },
    /layer surprise may not depend on @x\/core/,
  ],
  [
    'a reference that is missing',
    'packages/host',
    { layer: 'host', dependencies: ['core'], references: [] },
    /"references" lacks packages\/core/,
  ],
  [
    'a reference too many',
    'packages/backend-b',
    { layer: 'backend', dependencies: ['core'], references: ['packages/core', 'packages/host'] },
    /"references" names packages\/host, which is no dependency/,
  ],
];

for (const [title, folder, content, expected] of manifests) {
  test(`manifests: ${title}`, () => {
    const faults = faultsOf({}, { [folder]: content });
    assert.equal(faults.length, 1, faults.join('\n'));
    assert.match(faults[0] ?? '', expected);
  });
}

test('a test, too, may import only the layers that are open to it', () => {
  const declared = { 'packages/host': { ...packages['packages/host'], layer: 'host', devDependencies: ['lab'] } };
  const faults = faultsOf({ 'packages/host/src/a.test.ts': "import '@x/lab';" }, declared);
  assert.deepEqual(faults, ["packages/host/src/a.test.ts: import of '@x/lab': layer host may not import layer lab"]);
});

test('a package without a layer is named', () => {
  const checkout = mkdtempSync(join(tmpdir(), 'swy-boundaries-'));
  try {
    mkdirSync(join(checkout, 'packages/x'), { recursive: true });
    writeFileSync(join(checkout, 'packages/x/package.json'), '{"name":"@x/x"}');
    assert.throws(() => findBoundaryFaults(checkout), /packages\/x\/package.json: "nx.tags" has no "layer:..." entry/);
  } finally {
    rmSync(checkout, { recursive: true });
  }
});

test('this checkout keeps the rules', { timeout: 60_000 }, () => {
  assert.deepEqual(findBoundaryFaults(), []);
});
