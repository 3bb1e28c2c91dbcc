import { Profile } from 'pprof-format';
import { describe, expect, test } from 'vitest';
import { type CallNode, encodePprof, fromCpuProfile, fromHeapProfile } from './profiler.ts';

/** A profile as text and numbers, with texts instead of their numbers. */
function readPprof(bytes: Uint8Array) {
  const { stringTable, sampleType, sample, location, function: all, ...profile } = Profile.decode(bytes);
  const text = (at: number | bigint): string => stringTable.strings[Number(at)] ?? '?';
  const functions = new Map(
    all.map(({ id, name, filename, startLine }) => [id, `${text(name)} ${text(filename)}:${startLine}`]),
  );
  const locations = new Map(location.map(({ id, line }) => [id, functions.get(line[0]?.functionId ?? 0)]));
  return {
    firstText: stringTable.strings[0],
    sampleTypes: sampleType.map(({ type, unit }) => [text(type), text(unit)]),
    samples: sample.map(({ locationId, value }) => ({
      stack: locationId.map((id) => locations.get(id)),
      values: value.map(Number),
    })),
    timeNanos: Number(profile.timeNanos),
    durationNanos: Number(profile.durationNanos),
    period: Number(profile.period),
  };
}

const leaf = (functionName: string, self: readonly number[]): CallNode => ({
  functionName,
  file: 'main.mjs',
  line: 7,
  self,
  children: [],
});

describe('encodePprof', () => {
  test('a sample for each function that has values, its callers after it', () => {
    const inner = { ...leaf('inner', [3, 300]), children: [leaf('äußere', [1, 70_000_000_000])] };
    const outer = { ...leaf('outer', [0, 0]), children: [inner] };
    const read = readPprof(
      encodePprof({
        sampleTypes: [
          ['samples', 'count'],
          ['cpu', 'nanoseconds'],
        ],
        period: { of: ['cpu', 'nanoseconds'], value: 1_250_000 },
        time: 1_795_278_012_233,
        duration: 30_000,
        root: { ...leaf('(root)', []), children: [outer] },
      }),
    );
    expect(read).toEqual({
      firstText: '',
      sampleTypes: [
        ['samples', 'count'],
        ['cpu', 'nanoseconds'],
      ],
      samples: [
        { stack: ['inner main.mjs:7', 'outer main.mjs:7'], values: [3, 300] },
        { stack: ['äußere main.mjs:7', 'inner main.mjs:7', 'outer main.mjs:7'], values: [1, 70_000_000_000] },
      ],
      timeNanos: 1_795_278_012_233_000_000,
      durationNanos: 30_000_000_000,
      period: 1_250_000,
    });
  });
});

const frame = (functionName: string) => ({
  functionName,
  scriptId: '1',
  url: functionName.startsWith('(') ? '' : 'main.mjs',
  lineNumber: 6,
  columnNumber: 0,
});

test('fromCpuProfile: time goes to the function that was running; idleness is no work', () => {
  const profile = fromCpuProfile(
    {
      nodes: [
        { id: 1, callFrame: frame('(root)'), children: [2, 3] },
        { id: 2, callFrame: frame('(idle)') },
        { id: 3, callFrame: frame('run'), children: [4] },
        { id: 4, callFrame: frame('') },
      ],
      startTime: 1_000_000,
      endTime: 1_010_000,
      samples: [2, 3, 4, 4],
      timeDeltas: [5000, 1000, 2000, 2000],
    },
    1000,
  );
  expect(profile).toMatchObject({ time: 1000, duration: 10, period: { value: 2_500_000 } });
  expect(profile.root.children).toEqual([
    {
      functionName: 'run',
      file: 'main.mjs',
      line: 7,
      self: [1, 1_000_000],
      children: [{ functionName: '(anonymous)', file: 'main.mjs', line: 7, self: [2, 4_000_000], children: [] }],
    },
  ]);
});

test('fromHeapProfile: bytes of each function that allocates', () => {
  const child = { callFrame: frame('keep'), selfSize: 4096, children: [] };
  const profile = fromHeapProfile(
    { head: { callFrame: frame('(root)'), selfSize: 0, children: [child] } },
    { interval: 16_384, time: 1000, duration: 10 },
  );
  expect(profile.sampleTypes).toEqual([['inuse_space', 'bytes']]);
  expect(profile.root.children).toMatchObject([{ functionName: 'keep', self: [4096] }]);
});
