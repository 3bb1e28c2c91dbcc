import assert from 'node:assert/strict';
import { test } from 'vitest';
import { workspaces } from '../workspace.ts';
import { benchNames, findBenches, selectBenches, splitArguments } from './benches.ts';

const packages = [
  { folder: 'packages/core', targets: ['build', 'bench'] },
  { folder: 'packages/backend-nftables', targets: ['bench', 'bench-drift', 'test'] },
  { folder: 'packages/backend-iptables', targets: ['bench'] },
  { folder: 'packages/rollout', targets: ['bench', 'bench-iptables'] },
  { folder: 'packages/host', targets: ['test'] },
];
const targetsOf = (...names: readonly string[]): readonly string[] =>
  selectBenches(names, findBenches(packages)).map(({ target }) => target);

test('a bench is named after its package, further ones carry the rest of their target', () => {
  assert.deepEqual(benchNames(findBenches(packages)), [
    'nftables',
    'iptables',
    'ebpf',
    'profiles',
    'health-attack',
    'core',
    'backend-nftables',
    'backend-nftables-drift',
    'backend-iptables',
    'rollout',
    'rollout-iptables',
  ]);
});

test('without names everything runs, with names only those, in the given order', () => {
  assert.equal(targetsOf().length, 6);
  assert.deepEqual(targetsOf('rollout', 'core'), ['rollout:bench', 'core:bench']);
  assert.deepEqual(targetsOf('backend-nftables-drift'), ['backend-nftables:bench-drift']);
});

test('a suite runs the benches of one mode', () => {
  assert.deepEqual(targetsOf('nftables'), ['rollout:bench', 'backend-nftables:bench', 'backend-nftables:bench-drift']);
  assert.deepEqual(targetsOf('iptables'), ['rollout:bench-iptables', 'backend-iptables:bench']);
});

test('the suites of this checkout name benches that there are', () => {
  const all = findBenches(workspaces());
  assert.equal(selectBenches(['nftables'], all).length, 4);
  assert.equal(selectBenches(['iptables'], all).length, 2);
  assert.equal(selectBenches(['ebpf'], all).length, 4);
  assert.equal(selectBenches(['profiles'], all).length, 1);
  assert.equal(selectBenches(['health-attack'], all).length, 1);
});

test('what begins with a dash is for the benches', () => {
  assert.deepEqual(splitArguments(['iptables', 'core', '--nft', '100', '--quick']), {
    names: ['iptables', 'core'],
    options: ['--nft', '100', '--quick'],
  });
  assert.deepEqual(splitArguments(['iptables']), { names: ['iptables'], options: [] });
});
