import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workspaces } from '../workspace.ts';
import { benchNames, findBenches, selectBenches } from './benches.ts';

const packages = [
  { folder: 'packages/core', targets: ['build', 'bench'] },
  { folder: 'packages/backend-nftables', targets: ['bench', 'bench-connections', 'test'] },
  { folder: 'packages/rollout', targets: ['bench'] },
  { folder: 'packages/host', targets: ['test'] },
];
const targetsOf = (...names: readonly string[]): readonly string[] =>
  selectBenches(names, findBenches(packages)).map(({ target }) => target);

test('a bench is named after its package, further ones carry the rest of their target', () => {
  assert.deepEqual(benchNames(findBenches(packages)), [
    'nftables',
    'core',
    'backend-nftables',
    'backend-nftables-connections',
    'rollout',
  ]);
});

test('without names everything runs, with names only those, in the order asked for', () => {
  assert.equal(targetsOf().length, 4);
  assert.deepEqual(targetsOf('rollout', 'core'), ['rollout:bench', 'core:bench']);
  assert.deepEqual(targetsOf('backend-nftables-connections'), ['backend-nftables:bench-connections']);
});

test('a suite runs all benches of its packages', () => {
  assert.deepEqual(targetsOf('nftables'), [
    'rollout:bench',
    'backend-nftables:bench',
    'backend-nftables:bench-connections',
  ]);
});

test('the suites of this checkout name packages that have benches', () => {
  const all = findBenches(workspaces());
  assert.ok(selectBenches(['nftables'], all).some(({ target }) => target === 'rollout:bench'));
  assert.ok(selectBenches(['nftables'], all).some(({ target }) => target === 'backend-nftables:bench'));
});
