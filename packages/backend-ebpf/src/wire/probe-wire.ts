import { readFileSync } from 'node:fs';
import { type Clock, HostError, messageOf, millis, seconds, systemClock } from '@switchyard/core';
import { type CommandRunner, isPermissionDenied, isProgramMissing, runInScratchNamespace } from '@switchyard/host';
import { type BpfObject, createMap, loadBpfObject, testRun } from '@switchyard/native';
import type { MapSet } from '../kernel/kernel.ts';
import { mapSetOf } from '../kernel/map-sets.ts';
import { objectFile } from '../kernel/object-files.ts';
import { mapShapes } from '../layouts.ts';
import { guardChains, guardScript } from './guard-rules.ts';
import { defaultWireMarks } from './marks.ts';
import { firstPacket, writeProbedService } from './probe-packet.ts';

/** Whom to ask. */
export interface WireProbe {
  /** Runs programs where the agent runs them. */
  readonly runner: CommandRunner;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Of the compiled program; default: that of this build. */
  readonly object?: string;
}

const timeout = seconds(20);
/** How often, and how long in between, it is asked whether a namespace is there. */
const looks = 200;
const pause = millis(5);
/** TC_ACT_UNSPEC: the packet goes on. */
const goesOn = 0xffff_ffff;
const contextLength = 192;
/** With `monitor` it does nothing, and goes on doing so. Before it is there, its process is not in its namespace yet. */
const idle = 'nft';
/** Of `mark` in `struct __sk_buff`. */
const markOffset = 8;

/**
 * Why this machine cannot lead packets from outside to endpoints by conntrack entries, in words for the operator; empty when it can.
 * Found out by doing it where it hurts nobody: the guard table is loaded into a network namespace of its own (which also loads the modules
 * for conntrack and NAT), then the program, and in another namespace a packet is given to it, for which it makes an entry. Some
 * 100 ms. Where no namespace can be made, that the program loads has to do.
 */
export async function probeWire(probe: WireProbe, signal: AbortSignal): Promise<readonly string[]> {
  const rules = await rulesFault(probe.runner, signal);
  if (rules !== undefined) return [rules];
  const shapes = mapShapes({ services: 2, endpoints: 2, slots: 2, frontends: 2, sourceRanges: 2 });
  let maps: MapSet | undefined;
  try {
    maps = mapSetOf((name) => createMap(shapes[name]));
    using object = load(probe, maps);
    writeProbedService(maps);
    const fault = await inNamespace(probe, (netns) => entryFault(object, netns), signal);
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

async function rulesFault(runner: CommandRunner, signal: AbortSignal): Promise<string | undefined> {
  const chains = [...guardChains('IPv4', defaultWireMarks), ...guardChains('IPv6', defaultWireMarks)];
  const options = { stdin: guardScript(chains, []), timeout, signal };
  try {
    const result =
      (await runInScratchNamespace(runner, ['nft', '-f', '-'], options)) ??
      (await runner.run('nft', ['--check', '-f', '-'], options));
    if (result.exitCode === 0) return undefined;
    if (isPermissionDenied(result)) return 'nft may not change the rules: run as root or with CAP_NET_ADMIN';
    const said = result.stderr.trim().split('\n').slice(0, 3).join(' | ');
    return `nft or the kernel refuses the guard table of the wire path (reject in prerouting needs Linux 5.9): ${said}`;
  } catch (error) {
    if (isProgramMissing(error)) return 'the program nft is not installed; install the package nftables';
    throw error;
  }
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

/** Undefined also where no namespace can be made. */
async function inNamespace(
  { runner, clock = systemClock }: WireProbe,
  work: (netns: string) => string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const ended = new AbortController();
  const started = Promise.withResolvers<number>();
  const options = { timeout, signal: AbortSignal.any([signal, ended.signal]), onStart: started.resolve };
  const held = runner.run('unshare', ['--net', idle, 'monitor'], options).catch(() => undefined);
  try {
    const pid = await Promise.race([started.promise, held.then(() => undefined)]);
    if (pid === undefined) return undefined;
    for (let look = 0; look < looks; look++) {
      const name = nameOf(pid);
      if (name === undefined) return undefined;
      if (name === idle) return work(`/proc/${pid}/ns/net`);
      await clock.sleep(pause, signal);
    }
    return undefined;
  } finally {
    ended.abort();
    await held;
  }
}

/** Of a process; undefined when it has ended. */
function nameOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return undefined;
  }
}
