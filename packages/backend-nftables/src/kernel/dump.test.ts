import { expect, test } from 'vitest';
import { KernelState } from './adopt.ts';
import { dumpKernel } from './dump.ts';

const count = 2000;

function manyFrontends(): KernelState {
  const kernel = new KernelState();
  const ids = Array.from({ length: count }, (_, at) => `frontends4 10.96.${at >> 8}.${at & 255} . tcp . 80`);
  kernel.add(ids.map((id) => ({ id, data: '0x00000000' })));
  return kernel;
}

test('other work runs while many frontends are dumped', async () => {
  let turns = 0;
  const { signal } = new AbortController();
  const dumping = dumpKernel({ kernel: manyFrontends(), classes: new Map(), family: 'IPv4' }, signal);
  const turn = (): void => {
    turns++;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  await dumping;
  clearImmediate(next);
  expect((await dumping).match(/^frontend /gm)).toHaveLength(count);
  expect(turns).toBeGreaterThanOrEqual(4);
});

test('an aborted dump ends early', async () => {
  const stop = new AbortController();
  const dumping = dumpKernel({ kernel: manyFrontends(), classes: new Map(), family: 'IPv4' }, stop.signal);
  stop.abort();
  await expect(dumping).rejects.toThrow(/abort/);
});
