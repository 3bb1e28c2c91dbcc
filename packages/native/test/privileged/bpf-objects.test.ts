import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  BpfLoadFailure,
  type BpfLoadOptions,
  type BpfObject,
  createMap,
  loadBpfObject,
  openMapById,
  openProgramById,
  probeBpf,
  testRun,
} from '../../src/index.ts';
import { enableRunStats, MemoryBpfMap, runStatistics } from '../../src/testing/index.ts';
import { compileBpf } from '../compile-bpf.ts';

const others = ['count_connect', 'refuse_connect', 'first', 'second', 'udp_sockets'];
let folder: string;
let path: string;

beforeAll(() => {
  folder = mkdtempSync(`${tmpdir()}/swy-bpf-`);
  path = compileBpf('bpf-programs', folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

function load(options: BpfLoadOptions = {}): BpfObject {
  return loadBpfObject(path, { ...options, skip: ['broken', ...(options.skip ?? [])] });
}

function nextTurn(): Promise<unknown> {
  return new Promise((resolve) => setImmediate(resolve));
}

function failureOf(act: () => unknown): BpfLoadFailure {
  try {
    act();
  } catch (error) {
    if (error instanceof BpfLoadFailure) return error;
    throw error;
  }
  throw new Error('it was loaded');
}

describe('loading an object', () => {
  test('makes its maps, and programs that the kernel knows', () => {
    using object = load();
    expect([...object.maps.keys()].toSorted()).toEqual(['counts', 'unused']);
    expect(object.maps.get('counts')!.shape).toMatchObject({
      type: 'array',
      valueSize: 8,
      maxEntries: 4,
      mmapable: true,
    });
    expect([...object.programs.keys()].toSorted()).toEqual([...others, 'constants'].toSorted());
    const program = object.programs.get('count_connect')!;
    expect(program.tag).toMatch(/^[0-9a-f]{16}$/);
    expect(program.mapIds).toEqual(expect.arrayContaining([...object.maps.values()].map(({ id }) => id)));
    using again = openProgramById(program.id);
    expect(again).toMatchObject({ name: 'count_connect', tag: program.tag });
  });

  test('leaves nothing behind once it is closed', () => {
    const object = load();
    const { id } = object.programs.get('first')!;
    const map = object.maps.get('counts')!.id;
    object[Symbol.dispose]();
    expect(openProgramById(id)).toBeUndefined();
    // The kernel frees maps a moment later, after the last program that may use them.
    expect(() => object.maps.get('counts')!.lookup(new Uint8Array(4))).toThrow('the BPF map counts was closed before');
    expect(openMapById(map + 1_000_000)).toBeUndefined();
  });

  test('uses given maps, and does not close them', () => {
    using mine = createMap({ name: 'mine', type: 'array', keySize: 4, valueSize: 8, maxEntries: 7, mmapable: true });
    using stranger = createMap({ name: 'other', type: 'hash', keySize: 4, valueSize: 8, maxEntries: 7 });
    const object = load({
      maps: new Map([
        ['counts', mine],
        ['nobodys', stranger],
      ]),
    });
    expect(object.maps.get('counts')).toBe(mine);
    testRun(object.programs.get('first')!, { data: new Uint8Array(64), repeat: 5 });
    object[Symbol.dispose]();
    expect(new BigUint64Array(mine.values().buffer)[1]).toBe(5n);
  });

  test('does not take maps of tests', () => {
    const fake = new MemoryBpfMap({ name: 'counts', type: 'array', keySize: 4, valueSize: 8, maxEntries: 4 });
    expect(() => load({ maps: new Map([['counts', fake]]) })).toThrow(
      'this map, program or link is not one of the kernel',
    );
  });

  test.each([
    [{}, { large: 3n, answer: 2, small: 1 }],
    [{ answer: 77 }, { large: 3n, answer: 77, small: 1 }],
    [
      { small: 255, large: 0xfe_dc_ba_98_76_54_32_10n, answer: 0xff_ff_ff_ff },
      { large: 0xfe_dc_ba_98_76_54_32_10n, answer: 0xff_ff_ff_ff, small: 255 },
    ],
  ])('with the constants %o', (constants, expected) => {
    using object = load({ constants, skip: others });
    const context = new Uint8Array(192);
    context[8] = 41; // mark
    const result = testRun(object.programs.get('constants')!, { data: new Uint8Array(64), context });
    const view = new DataView(result.data.buffer, 14);
    expect({
      large: view.getBigUint64(0, true),
      answer: view.getUint32(8, true),
      small: view.getUint8(12),
    }).toEqual(expected);
    expect([result.returnValue, result.data.length, result.context[8]]).toEqual([7, 64, 42]);
  });

  test('that the verifier refuses says why', () => {
    const failure = failureOf(() => loadBpfObject(path, { skip: [...others, 'constants'] }));
    expect(failure).toMatchObject({ errnoName: 'EACCES', syscall: 'bpf' });
    expect(failure.log).toContain('invalid access to packet');
    expect(failure.message).toContain(
      `cannot load the BPF object ${path}: could not load it: bpf failed with EACCES; it said: `,
    );
    expect(failure.message).toContain('invalid access to packet');
    expect(failure.message.length).toBeLessThan(600);
  });

  test.each<[string, BpfLoadOptions, RegExp]>([
    ['a constant', { constants: { nobodys: 1 } }, /could not set the constant nobodys: bpf failed with ENOENT/],
    ['a program', { skip: ['nobodys'] }, /could not leave out the program nobodys: bpf failed with ENOENT/],
  ])('that does not have %s says so', (_, options, message) => {
    expect(failureOf(() => load(options)).message).toMatch(message);
  });

  test('that is none says so', () => {
    expect(failureOf(() => loadBpfObject('/etc/hostname')).message).toMatch(/could not read the object/);
  });
});

test('signals do not break off what the verifier does', () => {
  using _ = profile();
  for (let round = 0; round < 20; round++) {
    using object = load();
    expect(object.programs.size).toBe(6);
  }
});

/** A sampling profiler, which interrupts this thread with a signal ten thousand times a second. */
function profile(): Disposable {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: 100 });
  session.post('Profiler.start');
  return { [Symbol.dispose]: () => session.disconnect() };
}

test('the kernel counts runs of programs while statistics are on', () => {
  using object = load();
  const program = object.programs.get('first')!;
  const run = (repeat: number): unknown => testRun(program, { data: new Uint8Array(64), repeat });
  const before = runStatistics(program).runs;
  {
    using statistics = enableRunStats();
    run(1000);
    statistics[Symbol.dispose]();
  }
  const { runs, runTime } = runStatistics(program);
  expect(runs - before).toBe(1000n);
  expect(runTime).toBeGreaterThan(1000n);
});

test('this kernel can do all that is tried, and nothing of it stays', async () => {
  const count = (): number => readFileSync('/proc/self/maps', 'utf8').split('bpf-map').length;
  await nextTurn(); // memory of maps before
  const before = count();
  const { abilities, cgroup2 } = probeBpf();
  expect(Object.entries(abilities).filter(([, { status }]) => status === 'unusable')).toEqual([]);
  expect(cgroup2).toMatch(/^\/sys\/fs\/cgroup/);
  await nextTurn();
  expect(count()).toBe(before);
});
