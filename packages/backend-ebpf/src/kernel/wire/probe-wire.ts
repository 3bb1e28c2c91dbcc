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
import { mapShapes, mapSizes } from '../../render/layouts.ts';
import { guardChains, guardDescription } from './guard-rules.ts';
import { defaultWireMarks } from './marks.ts';
import { firstPacket, writeProbedService } from './probe-packet.ts';

/** Options of the probe. */
export interface WireProbe {
  /** Path of the compiled program; default: this build's. */
  readonly object?: string;
  /** Opens the trial of the rules; default: one of this machine. */
  readonly openTrial?: typeof openRuleTrial;
}

/** Longest wait for a namespace, in milliseconds. */
const patience = 20_000;
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
  const shapes = mapShapes(mapSizes(() => 2));
  let maps: MapSet | undefined;
  try {
    maps = mapSetOf((name) => createMap(shapes[name]));
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
