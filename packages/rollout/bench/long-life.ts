// A long life: changes of every kind of object that the agent follows, evenly spread, then everything as at the beginning. Afterwards the
// agent must be as large as before, hold no more descriptors, and its kernel must be what a fresh agent makes of the same cluster.
// Modes run side by side, each in a lab of its own. Needs root. Exit status 1: something has grown or differs.
//   --services N (1000)  --changes N (100000)  --minutes N (60)  --mode nftables,ebpf
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { millis, type Random, systemClock } from '@switchyard/core';
import { apiResources, type EndpointSlice } from '@switchyard/core/kubernetes';
import { seededRandom } from '@switchyard/core/testing';
import type { LabProcess } from '@switchyard/lab';
import { textTable } from '../src/report/report-html.ts';
import { type BenchLab, createBenchLab } from './bench-lab.ts';
import { createFiller, createFillers, endpointsPerService, fillerAddress, inParallel, sliceOf } from './big-cluster.ts';
import { Measurement } from './measure.ts';
import { type Mode, modeOf } from './modes.ts';
import { cpuOf, ownRssOf, rssOf } from './process-figures.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '1000' },
    changes: { type: 'string', default: '100000' },
    minutes: { type: 'string', default: '60' },
    mode: { type: 'string', default: 'nftables,ebpf' },
  },
});

/** Changes before the first figures: what grows with the first ones is no leak. */
const warmUp = 2000;
/** After this long everything is compiled, and what was used for a while has been given back. */
const rest = millis(65_000);
const mostGrowth = 1.05;

/** The cluster whose objects change. Services and slices are `filler-0` to `filler-<services - 1>`. */
interface World {
  readonly benchLab: BenchLab;
  readonly services: number;
  readonly random: Random;
  readonly absent: Set<number>;
  readonly hasMore: Set<number>;
  hasCidr: boolean;
  readonly signal: AbortSignal;
}

type Change = (world: World, index: number) => Promise<void>;

const upTo = (random: Random, most: number): number => Math.floor(random() * most);
const nameOf = (index: number): string => `filler-${index}`;
const extraCidr = 'extra';

function someAddresses({ random }: World): readonly string[] {
  const first = upTo(random, 1 << 20);
  return Array.from({ length: 1 + upTo(random, 2 * endpointsPerService) }, (_, at) => fillerAddress(first + at));
}

const endpoints: Change = async (world, index) => {
  await world.benchLab.api.update(
    apiResources.endpointSlices,
    sliceOf(nameOf(index), someAddresses(world)),
    world.signal,
  );
};

const conditions: Change = async (world, index) => {
  const slice: EndpointSlice = sliceOf(nameOf(index), someAddresses(world));
  const changed = slice.endpoints?.map((endpoint) => {
    const terminating = world.random() < 0.3;
    return { ...endpoint, conditions: { ready: !terminating, serving: world.random() < 0.8, terminating } };
  });
  await world.benchLab.api.update(apiResources.endpointSlices, { ...slice, endpoints: changed ?? [] }, world.signal);
};

const secondSlice: Change = async (world, index) => {
  const { api } = world.benchLab;
  const name = `${nameOf(index)}-more`;
  if (!world.hasMore.delete(index)) {
    world.hasMore.add(index);
    await api.create(apiResources.endpointSlices, sliceOf(nameOf(index), someAddresses(world), name), world.signal);
  } else await api.delete(apiResources.endpointSlices, { name }, {}, world.signal);
};

const service: Change = async (world, index) => {
  const { random } = world;
  const isNodePort = random() < 0.3;
  const spec = {
    type: isNodePort ? 'NodePort' : 'ClusterIP',
    sessionAffinity: random() < 0.2 ? 'ClientIP' : 'None',
    internalTrafficPolicy: random() < 0.2 ? 'Local' : 'Cluster',
    externalTrafficPolicy: isNodePort ? (random() < 0.5 ? 'Local' : 'Cluster') : null,
    ports: [{ name: 'http', port: 80 + upTo(random, 20), protocol: 'TCP' }],
  };
  const patch = { kind: 'merge', body: { spec } } as const;
  await world.benchLab.api.patch(apiResources.services, { name: nameOf(index) }, patch, world.signal);
};

/** The Service goes with its slices, or comes again. */
const existence: Change = async (world, index) => {
  if (world.absent.has(index)) await comeAgain(world, index);
  else await remove(world, index);
};

const node: Change = async ({ benchLab, random, signal }) => {
  const body = { metadata: { labels: { 'topology.kubernetes.io/zone': random() < 0.5 ? 'zone-a' : 'zone-b' } } };
  await benchLab.api.patch(apiResources.nodes, { name: benchLab.node.nodeName }, { kind: 'merge', body }, signal);
};

const serviceCidr: Change = async (world) => {
  const { api } = world.benchLab;
  world.hasCidr = !world.hasCidr;
  if (!world.hasCidr) return api.delete(apiResources.serviceCidrs, { name: extraCidr }, {}, world.signal);
  const cidr = { metadata: { name: extraCidr }, spec: { cidrs: ['10.77.0.0/16'] } };
  await api.create(apiResources.serviceCidrs, cidr, world.signal);
};

/** In a hundred changes. Of a Service that is absent only its existence changes. */
const shares: readonly (readonly [number, Change])[] = [
  [60, endpoints],
  [15, conditions],
  [8, secondSlice],
  [8, service],
  [6, existence],
  [2, node],
  [1, serviceCidr],
];

async function changeOne(world: World): Promise<void> {
  const index = upTo(world.random, world.services);
  let left = world.random() * 100;
  const found = shares.find(([share]) => (left -= share) < 0)?.[1] ?? endpoints;
  const isOfService = found !== node && found !== serviceCidr;
  await (isOfService && world.absent.has(index) ? existence : found)(world, index);
}

/** Makes `count` changes at equal distances; if writing takes longer, without a pause. */
async function change(world: World, count: number, duration: number, tell: (done: number) => void): Promise<void> {
  const start = systemClock.monotonic();
  for (let done = 0; done < count; done++) {
    const wait = start + (done * duration) / count - systemClock.monotonic();
    if (wait > 1) await systemClock.sleep(millis(wait), world.signal);
    await changeOne(world);
    tell(done + 1);
  }
}

async function remove({ benchLab, absent, hasMore, signal }: World, index: number): Promise<void> {
  const name = nameOf(index);
  absent.add(index);
  await benchLab.api.delete(apiResources.services, { name }, {}, signal);
  await benchLab.api.delete(apiResources.endpointSlices, { name }, {}, signal);
  if (hasMore.delete(index))
    await benchLab.api.delete(apiResources.endpointSlices, { name: `${name}-more` }, {}, signal);
}

async function comeAgain({ benchLab, absent, signal }: World, index: number): Promise<void> {
  absent.delete(index);
  await createFiller(benchLab.api, index, {}, signal);
}

/** Every Service new, as at the beginning. */
async function restore(world: World): Promise<void> {
  if (world.hasCidr) await serviceCidr(world, 0);
  await inParallel(world.services, async (index) => {
    if (!world.absent.has(index)) await remove(world, index);
    await comeAgain(world, index);
  });
}

interface Figures {
  readonly rss: number;
  readonly ownRss: number;
  readonly descriptors: number;
}

async function figuresOf(agent: LabProcess, signal: AbortSignal): Promise<Figures> {
  await systemClock.sleep(rest, signal);
  return {
    rss: rssOf(agent.pid),
    ownRss: ownRssOf(agent.pid),
    descriptors: readdirSync(`/proc/${agent.pid}/fd`).length,
  };
}

const readDump =
  "fetch('http://127.0.0.1:10249/debug/dump').then((r) => r.text()).then((t) => process.stdout.write(t))";

/** Lines without numbers that the kernel gives, and without comments. */
async function dumpOf({ node: { run } }: BenchLab): Promise<readonly string[]> {
  const { stdout, stderr, exitCode } = await run(process.execPath, ['-e', readDump], { timeout: millis(120_000) });
  if (exitCode !== 0) throw new Error(`/debug/dump: ${stderr}`);
  return stdout.split('\n').filter((line) => !line.startsWith('#'));
}

/** Milliseconds, of `warmUp` changes without pauses. */
async function cpuPerChange(world: World, agent: LabProcess): Promise<number> {
  const before = cpuOf(agent.pid);
  await change(world, warmUp, 0, () => undefined);
  return (cpuOf(agent.pid) - before) / warmUp;
}

async function liveLong(mode: Mode, signal: AbortSignal): Promise<readonly (readonly [string, string, boolean])[]> {
  const services = Number(values.services);
  await using benchLab = await createBenchLab(signal, `life${mode.proxyMode ?? 'nft'}`.slice(0, 8));
  await createFillers(benchLab.api, { services }, signal);
  const measurement = await Measurement.begin(benchLab, mode, signal);
  const agent = await measurement.start();
  const random = seededRandom('long life');
  const world: World = { benchLab, services, random, absent: new Set(), hasMore: new Set(), hasCidr: false, signal };
  const cpuFirst = await cpuPerChange(world, agent);
  await restore(world);
  const before = await figuresOf(agent, signal);
  const count = Number(values.changes);
  await change(world, count, Number(values.minutes) * 60_000, (done) => {
    if (done % Math.ceil(count / 20) === 0)
      process.stderr.write(`bench: ${mode.name}: ${done} changes, ${rssOf(agent.pid).toFixed(0)} MB\n`);
  });
  const cpuLast = await cpuPerChange(world, agent);
  await restore(world);
  const after = await figuresOf(agent, signal);
  const old = await dumpOf(benchLab);
  await agent.stop(millis(0));
  const fresh = await measurement.start();
  await systemClock.sleep(millis(3000), signal);
  const dump = new Set(await dumpOf(benchLab));
  const differing = new Set(old).symmetricDifference(dump);
  for (const line of [...differing].slice(0, 10)) process.stderr.write(`bench: differs: ${line}\n`);
  await fresh.stop(millis(0));
  return [
    ['resident memory, MB', pair(before.rss, after.rss), after.rss <= before.rss * mostGrowth],
    ['of that without files, MB', pair(before.ownRss, after.ownRss), after.ownRss <= before.ownRss * mostGrowth],
    ['descriptors', pair(before.descriptors, after.descriptors), after.descriptors <= before.descriptors],
    ['CPU per change, ms', `${cpuFirst.toFixed(2)} / ${cpuLast.toFixed(2)}`, true],
    ['lines of the kernel / other than a fresh node has', `${dump.size} / ${differing.size}`, differing.size === 0],
  ];
}

function pair(before: number, after: number): string {
  return `${before.toFixed(0)} / ${after.toFixed(0)}`;
}

async function main(): Promise<void> {
  const { signal } = new AbortController();
  const names = values.mode.split(',');
  const results = await Promise.all(names.map(modeOf).map((mode) => liveLong(mode, signal)));
  console.log(
    `${values.changes} changes in ${values.minutes} min, ${values.services} Services x ${endpointsPerService}, before / after`,
  );
  const rows = results[0]?.map(([what], at) => [what, ...results.map((one) => one[at]?.[1] ?? '')]) ?? [];
  console.log(textTable([['', ...names], ...rows]));
  if (results.flat().some(([, , isFine]) => !isFine)) process.exitCode = 1;
}

await main();
