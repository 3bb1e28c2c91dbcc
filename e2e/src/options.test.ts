import { describe, expect, test } from 'vitest';
import { parseOptions } from './options.ts';

describe('a command line', () => {
  test.each([
    ['names cells', ['a', 'b-*'], { kind: 'run', cells: ['a', 'b-*'], hasUpstream: true, jobs: 4 }],
    ['wants all', ['--all', '--no-upstream', '--keep'], { kind: 'run', cells: [], hasUpstream: false, isKept: true }],
    ['lists', ['--list', '--json', 'lab-*'], { kind: 'list', cells: ['lab-*'], isJson: true }],
    ['is a rehearsal', ['--dry-run', 'a'], { kind: 'run', isDry: true }],
    ['cleans up', ['--clean'], { kind: 'clean' }],
    ['wants a cluster for work', ['up', 'a'], { kind: 'up', cells: ['a'], hasUpstream: false }],
    ['is done with it', ['down', 'a', 'b-*'], { kind: 'down', cells: ['a', 'b-*'] }],
    ['brings a node image', ['a', '--node-image', 'my/node:v1.36.2'], { kind: 'run', nodeImage: 'my/node:v1.36.2' }],
    [
      'wants kube-proxy beside ours',
      ['a', '--baseline', '--upstream-image', 'i'],
      { hasBaseline: true, upstreamImage: 'i' },
    ],
    ['names a folder and a matrix', ['a', '--results', 'r', '--matrix', 'm.json'], { results: 'r', matrix: 'm.json' }],
  ])('%s', (_, args, expected) => {
    expect(parseOptions(args)).toMatchObject(expected);
  });

  test.each([
    ['nothing', [], 'which cells? Names, or --all'],
    ['both', ['--all', 'a'], '--all, or names of cells: not both'],
    ['two commands', ['--list', '--clean'], '--list and --clean exclude each other'],
    ['JSON of a run', ['a', '--json'], '--json is for --list'],
    ['no cell to bring up', ['up'], './dev e2e up takes names of cells'],
    ['a baseline of nothing', ['a', '--baseline', '--no-upstream'], "--baseline needs upstream's tests"],
    ['names to clean', ['--clean', 'a'], '--clean removes everything and takes no names'],
    ['no jobs', ['a', '--jobs', '0'], "--jobs is a number from 1 to 64, not '0'"],
    ['an unknown flag', ['--fast'], "Unknown option '--fast'"],
  ])('with %s is refused', (_, args, message) => {
    expect(() => parseOptions(args)).toThrow(message);
    expect(() => parseOptions(args)).toThrow('./dev e2e --help shows what there is');
  });
});
