import { millis } from '@switchyard/core';
import { beforeEach, expect, test } from 'vitest';
import { type FolderTime, FolderWatch } from './folder-watch.ts';

let folder: FolderTime | undefined;
let now = 0;
let found: readonly string[] = [];
let checks = 0;
let watch: FolderWatch;

beforeEach(() => {
  folder = { inode: 1n, changed: 5_000_000_000n };
  [now, found, checks] = [10_000, [], 0];
  watch = new FolderWatch(() => folder, { now: () => millis(now) });
});

function look(): readonly string[] {
  return watch.faults('/maps', () => {
    checks++;
    return found;
  });
}

test('names that were right are not checked again while the folder is the same', () => {
  for (let round = 0; round < 5; round++) expect(look()).toEqual([]);
  expect(checks).toBe(1);
});

test.each([
  ['a name changes', { inode: 1n, changed: 9_000_000_000n }],
  ['another folder takes its place', { inode: 2n, changed: 5_000_000_000n }],
  ['the folder goes', undefined],
])('they are checked when %s', (_, next) => {
  look();
  folder = next;
  found = ['map slots unpinned'];
  expect([look(), look()]).toEqual([found, found]);
});

test('names of a folder that changed just now are checked again, since the next change may have the same time', () => {
  now = 5_900.7;
  for (let round = 0; round < 3; round++) look();
  expect(checks).toBe(3);
  now = 6_100.3;
  for (let round = 0; round < 3; round++) look();
  expect(checks).toBe(4);
});

test('wrong names are checked until they are right', () => {
  found = ['map slots unpinned'];
  expect([look(), look()]).toEqual([found, found]);
  found = [];
  for (let round = 0; round < 3; round++) expect(look()).toEqual([]);
  expect(checks).toBe(3);
});
