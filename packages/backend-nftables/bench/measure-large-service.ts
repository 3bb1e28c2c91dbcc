/*
 * Measures one row of `large-service.ts` in the network namespace it is started in, and prints it as JSON. Its argument
 * is the number of endpoints of each slice of the large Service; 0 for no large Service.
 */
import { readlink } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import {
  ClusterState,
  type ClusterEvent,
  millis,
  nodeName,
  noopLogger,
  noopMetrics,
  seconds,
  systemClock,
} from '@switchyard/core';
import { createReconciler, type DataplaneBackend } from '@switchyard/core/engine';
import {
  largeService,
  largeSlice,
  MemorySource,
  node,
  replaceAll,
  service,
  slice,
  tableOptions,
} from '@switchyard/core/testing';
import { createCommandRunner } from '@switchyard/host';
import { nftablesBackend } from '../src/index.ts';

/** Times in milliseconds. */
export interface LargeServiceRow {
  readonly changes: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** The longest time that nothing else could run. */
  readonly stall: number;
  /** From the write of the last slice until the kernel has it. */
  readonly settled: number;
}

const slices = 50;
const writtenWithin = seconds(4);
const others = 1000;
const betweenChanges = millis(23);
const { signal } = new AbortController();

const otherSlice = (index: number, address: string): ClusterEvent => ({
  kind: 'upsert',
  resource: 'EndpointSlice',
  item: slice(`shop/s${index}`, { endpoints: [address] }),
});

/** A backend that says which endpoint addresses the kernel has got, after each apply. */
function observed(inner: DataplaneBackend, onApplied: (addresses: ReadonlySet<string>) => void): DataplaneBackend {
  return {
    name: inner.name,
    ipFamily: inner.ipFamily,
    capabilities: inner.capabilities,
    observers: {},
    apply: async (request, abort) => {
      const outcome = await inner.apply(request, abort);
      if (outcome.status !== 'applied') throw new Error(`not applied: ${JSON.stringify(outcome)}`);
      const { scope, table } = request;
      const services = scope.kind === 'full' ? [...table.services.values()] : scope.delta.upserted;
      onApplied(new Set(services.flatMap(({ endpoints }) => endpoints.Cluster.map(({ address }) => address))));
      return outcome;
    },
    cleanup: (abort) => inner.cleanup(abort),
    dump: (abort) => inner.dump(abort),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
}

async function measure(endpoints: number): Promise<LargeServiceRow> {
  const source = new MemorySource();
  const expected = new Map<string, (at: number) => void>();
  const host = { runner: createCommandRunner(), transport: 'netlink', logger: noopLogger } as const;
  const inner = await nftablesBackend.open(host, 'IPv4', signal);
  await using backend = observed(inner, (addresses) => {
    const now = performance.now();
    for (const [address, done] of expected) {
      if (!addresses.has(address)) continue;
      expected.delete(address);
      done(now);
    }
  });
  /** Pushes events that add an endpoint of this address; returns the time from `start` until the kernel has it. */
  const push: Push = async (address, events, start = performance.now()) => {
    const done = Promise.withResolvers<number>();
    expected.set(address, done.resolve);
    source.push(events);
    return (await done.promise) - start;
  };
  const stop = new AbortController();
  const running = createReconciler({
    source,
    state: new ClusterState({ nodeName: nodeName('n1') }),
    nodeName: nodeName('n1'),
    families: [{ backend, tableOptions: () => tableOptions(), afterApply: { syncHealth: async () => undefined } }],
    timing: {
      minSyncPeriod: undefined,
      retry: { first: seconds(1), max: seconds(30) },
      resyncInterval: seconds(3600),
    },
    clock: systemClock,
    logger: noopLogger,
    metrics: noopMetrics,
  }).run(stop.signal);
  const names = Array.from({ length: others }, (_, index) => index);
  const services = names.map((index) =>
    service(`shop/s${index}`, { clusterIps: [`10.97.${index >> 8}.${index & 255}`] }),
  );
  await push('10.200.0.1', [
    ...replaceAll({ services, slices: [slice('shop/s0', { endpoints: ['10.200.0.1'] })], nodes: [node('n1')] }),
  ]);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const writing = new AbortController();
  const changeOthers = async (): Promise<readonly number[]> => {
    const times: Promise<number>[] = [];
    const first = performance.now();
    for (let round = 1; !writing.signal.aborted || times.length < 100; round++) {
      const due = first + round * betweenChanges; // a stall that delays the write counts
      await systemClock.sleep(millis(Math.max(0, due - performance.now())), signal);
      const address = `10.201.${round >> 8}.${round & 255}`;
      times.push(push(address, [otherSlice((round * 7) % others, address)], due));
    }
    return Promise.all(times);
  };
  const changing = changeOthers();
  const settled = endpoints === 0 ? 0 : await writeLarge(endpoints, source, push);
  writing.abort();
  const times = [...(await changing)].sort((a, b) => a - b);
  delay.disable();
  stop.abort(new Error('done'));
  await running;
  await inner.cleanup(signal);
  const share = (part: number): number => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0;
  return { changes: times.length, p50: share(0.5), p99: share(0.99), max: share(1), stall: delay.max / 1e6, settled };
}

type Push = (address: string, events: readonly ClusterEvent[], start?: number) => Promise<number>;

async function writeLarge(endpoints: number, source: MemorySource, push: Push): Promise<number> {
  source.push([{ kind: 'upsert', resource: 'Service', item: largeService(slices * 100) }]);
  let last = Promise.resolve(0);
  for (let index = 0; index < slices; index++) {
    await systemClock.sleep(millis(writtenWithin / slices), signal);
    const item = largeSlice(index, endpoints);
    last = push(item.endpoints[0]?.address ?? '', [{ kind: 'upsert', resource: 'EndpointSlice', item }]);
  }
  return last;
}

if ((await readlink('/proc/self/ns/net')) === (await readlink(`/proc/${process.ppid}/ns/net`))) {
  throw new Error('this would program the network namespace of who started it; run large-service.ts, which makes one');
}
const row = await measure(Number(process.argv[2]));
process.stdout.write(JSON.stringify(row));
