import { type BpfMap, type BpfMapShape, type BpfMapType, createMap } from '../src/index.ts';

// Cost of map operations from Node: single calls, batches, dumps, and stores into mapped memory. Prints one table.

const count = 100_000;
const rounds = 200_000;

interface Row {
  readonly title: string;
  readonly shape: BpfMapShape;
}

function row(type: BpfMapType, keySize: number, valueSize: number, flags: Partial<BpfMapShape> = {}): Row {
  const named = Object.keys(flags).join(', ');
  return {
    title: `${type} ${keySize}/${valueSize}${named === '' ? '' : ` ${named}`}`,
    shape: { name: 'swy_bench', type, keySize, valueSize, maxEntries: count, ...flags },
  };
}

const rows: readonly Row[] = [
  row('hash', 24, 8),
  row('hash', 24, 8, { noPrealloc: true }),
  row('array', 4, 24),
  row('array', 4, 24, { mmapable: true }),
  row('lruHash', 32, 24),
  row('lpmTrie', 24, 4, { noPrealloc: true }),
];

/** Milliseconds of the fastest of three. */
function best(act: () => void, prepare: () => void = () => undefined): number {
  return Math.min(
    ...[1, 2, 3].map(() => {
      prepare();
      const start = performance.now();
      act();
      return performance.now() - start;
    }),
  );
}

function keysOf({ shape }: Row): Uint8Array {
  const keys = new Uint8Array(count * shape.keySize);
  const view = new DataView(keys.buffer);
  for (let index = 0; index < count; index++) {
    const at = index * shape.keySize;
    if (shape.type === 'lpmTrie') view.setUint32(at, 160, true);
    view.setUint32(at + shape.keySize - 4, index, true);
  }
  return keys;
}

function measure(one: Row): Readonly<Record<string, string>> {
  const keys = keysOf(one);
  const { keySize, valueSize } = one.shape;
  const values = new Uint8Array(count * valueSize).fill(1);
  let map: BpfMap = createMap(one.shape);
  const cold = best(
    () => map.updateBatch(keys, values, count),
    () => {
      map[Symbol.dispose]();
      map = createMap(one.shape);
    },
  );
  const warm = best(() => map.updateBatch(keys, values, count));
  const key = keys.slice(0, keySize);
  const value = values.slice(0, valueSize);
  const update = best(() => {
    for (let index = 0; index < rounds; index++) map.update(key, value);
  });
  const lookup = best(() => {
    for (let index = 0; index < rounds; index++) map.lookup(key);
  });
  const dump = best(() => void map.entries());
  map[Symbol.dispose]();
  const each = (ms: number): string => `${((ms * 1000) / rounds).toFixed(2)} us`;
  return {
    'cold batch': `${cold.toFixed(1)} ms`,
    'warm batch': `${warm.toFixed(1)} ms`,
    update: each(update),
    lookup: each(lookup),
    dump: `${dump.toFixed(1)} ms`,
  };
}

console.log(`\nbatches and dumps of ${count} elements, single calls on one element, best of three\n`);
console.table(Object.fromEntries(rows.map((one) => [one.title, measure(one)])));
{
  using map = createMap({ ...row('array', 4, 8, { mmapable: true }).shape });
  const words = new BigUint64Array(map.values().buffer);
  const stores = best(() => {
    for (let index = 0; index < 1_000_000; index++) Atomics.store(words, index % count, 5n);
  });
  console.log(`a store of 8 bytes into mapped memory: ${stores.toFixed(1)} ns`);
}
