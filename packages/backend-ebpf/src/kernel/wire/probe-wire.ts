import { release } from 'node:os';
import { openRuleTrial } from '@switchyard/backend-nftables';
import { HostError, ipFamilies, messageOf } from '@switchyard/core';
import {
  type BpfObject,
  createMap,
  loadBpfObject,
  openScratchNamespace,
  type ScratchNamespace,
  testRun,
} from '@switchyard/native';
import type { MapSet } from '../kernel.ts';
import { mapSetOf } from '../programs/map-sets.ts';
import { objectFile } from '../programs/object-files.ts';
import { actions, endpointFlags, frontendScopes, mapShapes, mapSizes, offsetOf, sizeOf } from '../../render/layouts.ts';
import { defaultWireMarks, guardChains, guardDescription } from './guard-rules.ts';
import { bytesOf } from '../../render/address-words.ts';

export interface WireProbe {
  readonly object?: string;
  readonly openTrial?: typeof openRuleTrial;
}

/** Longest wait for a namespace, in milliseconds. */
const patience = 20_000;
/** Entries of each map of the probe. Maps of 65,536 entries take the kernel 25 ms each. */
const fewEntries = 2;
/** TC_ACT_UNSPEC: the packet continues. */
const goesOn = 0xffff_ffff;
const contextLength = 192;
/** Of `mark` in `struct __sk_buff`. */
const markOffset = 8;

/**
 * Reasons for operators why this machine cannot forward packets from outside by conntrack entries; empty if it can. The probe has no
 * effect on the node: it uses network namespaces that end with it. It loads the guard table into one (which also loads the modules for
 * conntrack and NAT), then loads the program, and passes it a packet in another namespace, for which it must make an entry. Takes some
 * 100 ms. If no namespace can be made, it is enough that the program loads. Runs no program of the machine.
 */
export async function probeWire(probe: WireProbe, signal: AbortSignal): Promise<readonly string[]> {
  const rules = await rulesFault(probe, signal);
  if (rules !== undefined) return [rules];
  const shapes = mapShapes(mapSizes(() => fewEntries));
  let maps: MapSet | undefined;
  try {
    maps = mapSetOf((name) => createMap({ ...shapes[name], maxEntries: fewEntries }));
    using object = load(probe, maps);
    writeProbedService(maps);
    const fault = await inNamespace((netns) => entryFault(object, netns), signal);
    return fault === undefined ? [] : [fault];
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof HostError)) throw error;
    return [`the kernel does not take the wire program: ${messageOf(error)}`];
  } finally {
    for (const map of Object.values(maps ?? {})) map[Symbol.dispose]();
  }
}

function load({ object = objectFile('wire') }: WireProbe, maps: MapSet): BpfObject {
  const { service, reject } = defaultWireMarks;
  const constants = { family: 4, service_mark: service, reject_mark: reject };
  return loadBpfObject(object, { maps: new Map(Object.entries(maps)), constants });
}

async function rulesFault({ openTrial = openRuleTrial }: WireProbe, signal: AbortSignal): Promise<string | undefined> {
  const chains = ipFamilies.flatMap((family) => guardChains(family, defaultWireMarks));
  using trial = await openTrial(undefined, signal);
  const refusal = trial.refusal({ ...guardDescription(chains), name: 'switchyard-probe-guard' });
  if (refusal === undefined) return undefined;
  if (refusal.refusal === 'permission') return refusal.message;
  return `Linux ${release()} refuses the guard table of the wire path (reject in prerouting needs Linux 5.9): ${refusal.message}`;
}

function entryFault(object: BpfObject, netns: string): string | undefined {
  const program = object.programs.get('lb_in');
  if (program === undefined) return 'the wire program is not in its object file';
  const run = testRun(program, { data: firstPacket, context: new Uint8Array(contextLength), netns });
  const mark = new DataView(run.context.buffer, run.context.byteOffset).getUint32(markOffset, true);
  if (run.returnValue === goesOn && mark === defaultWireMarks.service) return undefined;
  const seen = `it returned ${run.returnValue | 0} and left the mark 0x${mark.toString(16)}`;
  return `the kernel makes no conntrack entry with NAT for the wire program: ${seen}`;
}

/** Undefined also if no namespace can be made. */
async function inNamespace(
  work: (netns: string) => string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  let namespace: ScratchNamespace;
  try {
    namespace = await openScratchNamespace(AbortSignal.any([signal, AbortSignal.timeout(patience)]));
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
  using _ = namespace;
  return work(namespace.path);
}

/** 192.0.2.1:80 over TCP, which forwards to 192.0.2.2:8080: addresses for documentation. */
const frontend = { address: [192, 0, 2, 1], port: 80 } as const;
const endpoint = { address: [192, 0, 2, 2], port: 8080 } as const;
const client = { address: [192, 0, 2, 3], port: 40_000 } as const;
const tcp = 6;
const id = 1;
const cookie = 1;

function writeProbedService(maps: MapSet): void {
  const target = record('endpoint', endpoint.address);
  target.view.setUint16(offsetOf('endpoint', 'port'), endpoint.port);
  target.view.setUint16(offsetOf('endpoint', 'flags'), endpointFlags.alive | endpointFlags.inCluster, true);
  target.view.setUint32(offsetOf('endpoint', 'generation'), 1, true);
  target.view.setUint32(offsetOf('endpoint', 'service'), id, true);
  maps.endpoints.update(wordBytes(id), target.bytes);
  maps.slots.update(wordBytes(0), wordBytes(id, id));
  const service = record('service', []);
  service.view.setBigUint64(offsetOf('service', 'cluster_set'), 1n << 32n, true); // one slot, the first
  service.view.setUint16(offsetOf('service', 'cookie'), cookie, true);
  maps.services.update(wordBytes(id), service.bytes);
  const key = record('frontend_key', frontend.address);
  key.view.setUint16(offsetOf('frontend_key', 'port'), frontend.port);
  key.view.setUint8(offsetOf('frontend_key', 'protocol'), tcp);
  key.view.setUint8(offsetOf('frontend_key', 'scope'), frontendScopes.address);
  const forAll = actions.cluster | (actions.cluster << 3) | (actions.cluster << 6);
  maps.frontends.update(key.bytes, wordBytes(id, forAll | (cookie << 16)));
}

/** First packet of a connection to it, from the Ethernet header on. Without checksums, which the program does not read. */
const firstPacket: Uint8Array = Uint8Array.from(
  [
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00],
    [0x45, 0, 0, 40, 0, 1, 0, 0, 64, tcp, 0, 0, ...client.address, ...frontend.address],
    [client.port >> 8, client.port & 0xff, 0, frontend.port],
    [0, 0, 0, 1, 0, 0, 0, 0], // sequence and acknowledged numbers
    [0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0], // SYN
  ].flat(),
);

/** A record of zeros that begins with an address. */
function record(
  name: 'endpoint' | 'service' | 'frontend_key',
  address: readonly number[],
): { readonly bytes: Uint8Array; readonly view: DataView } {
  const bytes = new Uint8Array(sizeOf(name));
  if (address.length > 0) bytes.set([0xff, 0xff, ...address], 10); // ::ffff:a.b.c.d
  return { bytes, view: new DataView(bytes.buffer) };
}

function wordBytes(...words: readonly number[]): Uint8Array {
  return bytesOf(Uint32Array.from(words));
}
