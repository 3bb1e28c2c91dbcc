import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { networkNamespaces } from './network-namespaces.ts';

/** A folder like /proc, with the namespace of each process, and one like /run/netns. */
function places(processes: Readonly<Record<string, string>>, mounts: readonly string[]) {
  const root = mkdtempSync(join(tmpdir(), 'switchyard-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const [proc, mounted] = [join(root, 'proc'), join(root, 'netns')];
  for (const [name, target] of Object.entries(processes)) {
    mkdirSync(join(proc, name, 'ns'), { recursive: true });
    if (target !== '') symlinkSync(target, join(proc, name, 'ns/net'));
  }
  mkdirSync(mounted);
  for (const name of mounts) writeFileSync(join(mounted, name), '');
  return { proc, mounted };
}

test('each namespace once, ours first, then mounted ones', () => {
  const { proc, mounted } = places(
    { self: 'net:[1]', '7': 'net:[2]', '8': 'net:[1]', '9': 'net:[2]', sys: 'net:[3]' },
    ['cni-1'],
  );
  const found = [...networkNamespaces({ proc, mounted })].filter((one) => one !== undefined);
  expect(found).toEqual([
    { inode: 1, path: `${proc}/self/ns/net` },
    { inode: statSync(`${mounted}/cni-1`).ino, path: `${mounted}/cni-1` },
    { inode: 2, path: `${proc}/7/ns/net` },
  ]);
});

test('an ended process, or one without permission, is skipped', () => {
  const options = places({ self: 'net:[1]', '7': '', '8': 'nonsense', '9': 'net:[2]' }, []);
  expect([...networkNamespaces(options)].map((one) => one?.inode)).toEqual([1, undefined, undefined, 2]);
});

test('nothing is mounted on many machines', () => {
  const { proc } = places({ self: 'net:[1]' }, []);
  expect([...networkNamespaces({ proc, mounted: '/nonexistent' })]).toHaveLength(1);
});
