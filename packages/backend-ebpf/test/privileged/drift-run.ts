import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ClusterEvent, parseIp, seconds } from '@switchyard/core';
import { type HealingParts, HealingRun, node, replaceAll, service, slice, TimedLogger } from '@switchyard/core/testing';
import { type CommandRunner } from '@switchyard/host';
import { type Lab, type LabNode, runnerIn } from '@switchyard/lab';
import { type BpfMap, createMap, loadBpfObject, openPinnedLink, openPinnedMap, pin, unpin } from '@switchyard/native';
import { clearMap } from '@switchyard/native/testing';
import { frontendScopes, type MapName, offsetOf, sizeOf } from '../../src/render/layouts.ts';
import { openEbpfBackend } from '../../src/open-backend.ts';
import { addressBytes } from '../../src/render/settings/address-bytes.ts';
import { objectFile } from '../../src/kernel/programs/object-files.ts';

const { signal } = new AbortController();
/** Drift that comes sooner after the last one, or an apply sooner after another, waits; after three looks only fingerprints are read. Milliseconds. */
const calm = 2600;

/** Service `shop/cart` at this address, with a NodePort and source ranges, and others without traffic. */
export const cartIp = '10.96.0.10';

/** Number of Services, and of endpoints of each. */
export function driftCluster(services: number, endpoints: number): readonly ClusterEvent[] {
  const names = Array.from({ length: services - 1 }, (_, index) => `shop/s${index}`);
  const number = (first: number, index: number): string =>
    `${first}.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
  const ips = (of: number): readonly string[] =>
    Array.from({ length: endpoints }, (_, index) => number(11, of * endpoints + index + 1));
  return replaceAll({
    services: [
      service('shop/cart', {
        clusterIps: [cartIp],
        ports: [{ port: 80, nodePort: 30_080 }],
        loadBalancerIps: ['198.51.100.1'],
        sourceRanges: ['203.0.113.0/24'],
      }),
      ...names.map((name, index) => service(name, { clusterIps: [number(12, index + 1)] })),
    ],
    slices: [
      slice('shop/cart', { endpoints: ips(0) }),
      ...names.map((name, index) => slice(name, { endpoints: ips(index + 1) })),
    ],
    nodes: [node('n1')],
  });
}

class DriftLogger extends TimedLogger {
  /** In a fight, this is what says that something is healed. */
  override debug(message: string, fields = {}): void {
    if (message === 'drift healed') this.info(message, fields);
  }
}

/** Changes by another process. */
export type Damage = keyof typeof damages;

interface Place {
  readonly pins: string;
  readonly runner: CommandRunner;
}

function map(place: Place, name: MapName): BpfMap {
  const found = openPinnedMap(join(place.pins, 'maps', name));
  if (found === undefined) throw new Error(`map ${name} is not pinned`);
  return found;
}

function edit(place: Place, name: MapName, act: (map: BpfMap) => unknown): void {
  using found = map(place, name);
  act(found);
}

function link(place: Place, isIt: (name: string) => boolean): string {
  const name = readdirSync(join(place.pins, 'links')).find(isIt);
  if (name === undefined) throw new Error('no such link is pinned');
  return join(place.pins, 'links', name);
}

function detach(place: Place, isIt: (name: string) => boolean): void {
  using found = openPinnedLink(link(place, isIt));
  found?.detach();
}

const isSocket = (name: string): boolean => name === 'connect4';
const isWire = (name: string): boolean => name.startsWith('lb_in-');

function cartKey(port = 80): Uint8Array {
  const key = new Uint8Array(sizeOf('frontend_key'));
  key.set(addressBytes(parseIp(cartIp)));
  new DataView(key.buffer).setUint16(offsetOf('frontend_key', 'port'), port);
  key[offsetOf('frontend_key', 'protocol')] = 6;
  key[offsetOf('frontend_key', 'scope')] = frontendScopes.address;
  return key;
}

async function nft(place: Place, ...args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await place.runner.run('nft', args, { timeout: seconds(30), signal });
  if (exitCode !== 0) throw new Error(stderr);
}

/** The kind that is reported, the first change in words, and how it is done. */
export const damages = {
  'a socket program is detached': ['program', /connect4/, (place: Place) => detach(place, isSocket)],
  'a socket program is exchanged': [
    'program',
    /connect4/,
    (place: Place) => {
      using object = loadBpfObject(objectFile('socket'), { constants: { family: 4, socket_scope: 1 } });
      using found = openPinnedLink(link(place, isSocket));
      const program = object.programs.get('connect4');
      if (program !== undefined) found?.update(program);
    },
  ],
  'a socket link is unpinned': ['program', /connect4/, (place: Place) => unpin(link(place, isSocket))],
  'the wire program is detached': ['program', /./, (place: Place) => detach(place, isWire)],
  'a map is unpinned': ['map', /map services/, (place: Place) => unpin(join(place.pins, 'maps/services'))],
  'another map is pinned in its place': [
    'map',
    /map slots/,
    (place: Place) => {
      const path = join(place.pins, 'maps/slots');
      using before = map(place, 'slots');
      unpin(path);
      using other = createMap(before.shape);
      pin(other, path);
    },
  ],
  'a service has no endpoints': [
    'element',
    /^map services: the record of shop\/cart:\/TCP edited$/,
    (place: Place) =>
      edit(place, 'services', (services) => services.values().fill(0, sizeOf('service'), sizeOf('service') + 16)),
  ],
  'all slots are zero': [
    'element',
    /^map slots/,
    (place: Place) => edit(place, 'slots', (slots) => slots.values().fill(0)),
  ],
  'a frontend is deleted': [
    'element',
    /^map frontends: 10.96.0.10:80\/TCP of shop\/cart:\/TCP deleted$/,
    (place: Place) => edit(place, 'frontends', (frontends) => frontends.delete(cartKey())),
  ],
  'a frontend is added': [
    'element',
    /^map frontends: 10.96.0.10:81\/TCP added$/,
    (place: Place) => edit(place, 'frontends', (frontends) => frontends.update(cartKey(81), new Uint8Array(8).fill(1))),
  ],
  'all frontends are deleted': ['element', /^map frontends/, (place: Place) => edit(place, 'frontends', clearMap)],
  'the configuration is edited': [
    'element',
    /^map configuration edited$/,
    (place: Place) => edit(place, 'configuration', (configuration) => configuration.values().fill(0)),
  ],
  'the addresses of the node are deleted': [
    'element',
    /^map node_addresses edited$/,
    (place: Place) => edit(place, 'node_addresses', clearMap),
  ],
  'the guard table is deleted': [
    'table',
    /switchyard-ebpf-guard/,
    (place: Place) => nft(place, 'delete', 'table', 'inet', 'switchyard-ebpf-guard'),
  ],
} as const satisfies Record<string, readonly [kind: string, change: RegExp, act: (place: Place) => unknown]>;

/** A reconciler with the IPv4 backend of a lab's node on the real kernel. */
export class DriftRun extends HealingRun {
  readonly #place: Place;

  private constructor(place: Place, parts: HealingParts) {
    super(parts);
    this.#place = place;
  }

  /** Waits until the cluster is in the kernel. */
  static async start(lab: Lab, here: LabNode, cluster: readonly ClusterEvent[]): Promise<DriftRun> {
    const { cgroupPath: cgroup, bpffsPath: bpffs } = here;
    if (cgroup === undefined || bpffs === undefined) throw new Error(lab.limitations.join(' '));
    const logger = new DriftLogger();
    const runner = runnerIn(here, lab.folder);
    const netns = `/run/netns/${here.namespace}`;
    const sockets = { cgroup, bpffs, northSouth: 'tc', socketLb: 'all', interfaces: [] } as const;
    const backend = await openEbpfBackend({ ...sockets, logger, netns }, 'IPv4', signal);
    const place = { pins: join(bpffs, 'switchyard/v1-ipv4'), runner };
    const run = new DriftRun(place, { logger, backends: [backend], calm, patience: 20_000 });
    await run.fill(cluster);
    run.stirred(performance.now());
    return run;
  }

  /** The reports of drift from a place on. */
  driftFrom(start: number): readonly { readonly kind: unknown; readonly changes: readonly string[] }[] {
    const lines = this.linesFrom(start).filter(({ message }) => message.startsWith('drift:'));
    return lines.map(({ fields }) => ({ kind: fields['kind'], changes: fields['changes'] as readonly string[] }));
  }

  protected override async damage(script: string): Promise<void> {
    await damages[script as Damage][2](this.#place);
  }
}
