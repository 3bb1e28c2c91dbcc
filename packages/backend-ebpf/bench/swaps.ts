import { once } from 'node:events';
import { type ForwardingTable, type ServiceForwarding, systemClock } from '@switchyard/core';
import { seededRandom, situation, there } from '@switchyard/core/testing';
import { linkCgroup, loadBpfObject } from '@switchyard/native';
import { objectFile } from '../src/kernel/programs/object-files.ts';
import { hooksOf } from '../src/kernel/kernel.ts';
import { ServiceWriter } from '../src/kernel/maps/service-writer.ts';
import { clusterIp } from './large-table.ts';
import { type Machine, readAll } from './machine.ts';

/** Result of a run of swaps against connects. */
export interface SwapFigures {
  readonly swaps: number;
  readonly connects: number;
  /** Connects that reached an endpoint of another Service. */
  readonly wrong: number;
  readonly errors: number;
  /** Microseconds of one swap, while the connects go on. */
  readonly swapTime: number;
}

const services = 4;
/** Endpoints that a Service ever has. */
const known = 24;
/** Versions of each Service that are swapped for one another. */
const versions = 64;

/**
 * Exchanges the endpoints of some Services as fast as the writer can, while a process connects to them as fast as it can. Endpoints of
 * Service `i` have ports of the i-th thousand, so each choice shows its Service. The hook of getpeername is left out: it would show
 * the frontend. Services come and go too, so that ids and slots change hands.
 */
export async function swapAgainstConnects(machine: Machine, swaps: number, signal: AbortSignal): Promise<SwapFigures> {
  await using kernel = machine.kernel();
  const sizes = { services: 4096, endpoints: 1 << 20, slots: 1 << 22, frontends: 65_536, sourceRanges: 16_384 };
  const { maps } = await kernel.openMaps(sizes, signal);
  const writer = new ServiceWriter(maps, { clock: systemClock });
  const all = Array.from({ length: services }, (_, index) => versionsOf(index));
  writer.applyFull(tableOfFirst(all));
  using object = loadBpfObject(objectFile('socket'), {
    maps: new Map(Object.entries(maps)),
    constants: { family: 4 },
    skip: hooksOf.IPv4.filter((hook) => hook !== 'connect4'),
  });
  const program = object.programs.get('connect4');
  if (program === undefined) throw new Error('there is no program connect4');
  using link = linkCgroup(program, machine.cgroup, 'connect4');
  const watched = all.flatMap((_, index) => [
    clusterIp(index),
    String(1000 * (index + 1)),
    String(1000 * (index + 1) + 999),
  ]);
  const child = machine.start(['watch', ...watched], 1);
  const said = readAll(child);
  await once(child.stdout ?? child, 'readable');
  const time = swap(writer, all, swaps);
  child.stdin?.end();
  await once(child, 'exit');
  link.detach();
  await kernel.remove(signal);
  const [, result = ''] = (await said).split('\n');
  return {
    ...(JSON.parse(result) as Pick<SwapFigures, 'connects' | 'wrong' | 'errors'>),
    swaps,
    swapTime: (time * 1000) / swaps,
  };
}

/** Milliseconds. */
function swap(writer: ServiceWriter, all: readonly (readonly ServiceForwarding[])[], swaps: number): number {
  const random = seededRandom('swaps');
  const start = performance.now();
  for (let index = 0; index < swaps; index++) {
    const versionsOfOne = all[index % services] ?? [];
    const next = versionsOfOne[Math.floor(random() * versions)];
    if (next === undefined) continue;
    const { failed } = writer.applyDelta({ upserted: [next], removed: [], settingsChanged: false });
    if (failed.size > 0) throw new Error(`not written: ${[...failed.values()].map(String).join('; ')}`);
  }
  return performance.now() - start;
}

function tableOfFirst(all: readonly (readonly ServiceForwarding[])[]): ForwardingTable {
  const table = situation({});
  return { ...table, services: new Map(all.flatMap(([first]) => (first === undefined ? [] : [[first.key, first]]))) };
}

/** The same Service with other endpoints: 1 to 10 of those it may have. */
function versionsOf(index: number): readonly ServiceForwarding[] {
  const random = seededRandom(`service ${index}`);
  return Array.from({ length: versions }, () => {
    const count = 1 + Math.floor(random() * 10);
    const first = Math.floor(random() * (known - count));
    const table = situation({
      [`s${index}`]: {
        clusterIps: [clusterIp(index)],
        ports: [{ protocol: 'UDP', port: 80 }],
        endpoints: Array.from({ length: count }, (_, at) => there(`11.0.${index}.${first + at}`)),
      },
    });
    const [service] = table.services.values();
    if (service === undefined) throw new Error('the table has no Service');
    const marked = service.endpoints.Cluster.map((endpoint, at) => ({
      ...endpoint,
      port: (1000 * (index + 1) + first + at) as typeof endpoint.port,
    }));
    return { ...service, endpoints: { Cluster: marked, Local: [] }, knownEndpoints: marked };
  });
}
