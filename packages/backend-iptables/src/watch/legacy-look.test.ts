import { expect, test } from 'vitest';
import type { Change } from '../kernel/apply/change.ts';
import { KernelState } from '../kernel/apply/kernel-state.ts';
import { PrintedRules } from '../kernel/apply/printed-rules.ts';
import { hashRules } from '../kernel/apply/rule-hash.ts';
import type { IptablesClient } from '../kernel/client/iptables-client.ts';
import { LegacyLook } from './legacy-look.ts';

const svc = 'KUBE-SVC-ABCDEFGHIJKLMN23';
const other = 'KUBE-SVC-ABCDEFGHIJKLMN24';
const { signal } = new AbortController();

/** A look at a nat table whose chains hold one rule each. `during` runs while it is read. */
class Bench {
  readonly kernel = new Map<string, string>([
    [svc, '-j A'],
    [other, '-j B'],
  ]);
  during: () => void = () => undefined;
  state: KernelState | undefined = new KernelState();
  readonly look: LegacyLook;

  constructor() {
    for (const [name, rule] of this.kernel) this.state?.setHash('nat', name, hashRules([rule]));
    const client: Pick<IptablesClient, 'read'> = {
      read: async (table, reader) => {
        if (table !== 'nat') return;
        const kernel = [...this.kernel];
        this.during();
        await Promise.resolve();
        for (const [name] of kernel) reader.chain(name, '-');
        for (const [name, rule] of kernel) reader.rule(name, rule, 0, 0);
      },
    };
    const state = (): KernelState | undefined => this.state;
    this.look = new LegacyLook({
      get state() {
        return state();
      },
      reading: {
        client: client as IptablesClient,
        lists: new Map(),
        jumps: [],
        printed: new PrintedRules(),
        isOurs: () => true,
      },
    });
  }

  /** Writes a chain as an apply does. */
  write(name: string, rule: string): void {
    const change: Change = {
      kind: 'chain',
      table: 'nat',
      name,
      hash: hashRules([rule]),
      rulesOf: () => [],
      lines: 1,
    };
    this.kernel.set(name, rule);
    this.state?.note(change);
    this.look.noteWritten(change);
  }

  async changed(): Promise<readonly string[] | undefined> {
    return (await this.look.compare(signal))?.map(({ chain }) => chain);
  }
}

test('finds foreign changes', async () => {
  const bench = new Bench();
  expect(await bench.changed()).toEqual([]);
  bench.kernel.set(svc, '-j X');
  expect(await bench.changed()).toEqual([svc]);
});

test('what is written while it reads is no drift, but what else was changed is', async () => {
  const bench = new Bench();
  bench.kernel.set(other, '-j X');
  bench.during = () => bench.write(svc, '-j C');
  expect(await bench.changed()).toEqual([other]);
});

test('what was written before it reads is looked at', async () => {
  const bench = new Bench();
  bench.write(svc, '-j C');
  bench.kernel.set(svc, '-j X');
  expect(await bench.changed()).toEqual([svc]);
});

test('begins when the apply under way has ended', async () => {
  const bench = new Bench();
  const apply = bench.look.applying();
  const looking = bench.changed();
  bench.kernel.set(svc, '-j C'); // written, and not noted yet
  bench.write(svc, '-j C');
  apply[Symbol.dispose]();
  expect(await looking).toEqual([]);
});

test('waits for an apply that began meanwhile: what that wrote is known at its end', async () => {
  const bench = new Bench();
  let apply: Disposable | undefined;
  bench.during = () => {
    apply = bench.look.applying();
    bench.kernel.set(svc, '-j C');
  };
  const looking = bench.changed();
  await new Promise(setImmediate);
  bench.write(svc, '-j C');
  apply?.[Symbol.dispose]();
  expect(await looking).toEqual([]);
});

test.each<[string, (bench: Bench) => void]>([
  ['it is not known what was left', (bench) => (bench.state = undefined)],
  ['all was read anew meanwhile', (bench) => (bench.during = () => (bench.state = new KernelState()))],
])('says nothing when %s', async (_, prepare) => {
  const bench = new Bench();
  prepare(bench);
  bench.kernel.set(svc, '-j X');
  expect(await bench.changed()).toBeUndefined();
});
