import { gzipSync } from 'node:zlib';
import { HostError, messageOf, type Millis, systemClock } from '@switchyard/core';
import { Session } from 'node:inspector/promises';
import type { HeapProfiler, Profiler } from 'node:inspector';
import { Function, Line, Location, Profile, Sample, StringTable, ValueType as PprofValueType } from 'pprof-format';

/** `pprof`: compressed protobuf for `go tool pprof`. `v8`: JSON as V8 writes it, for Chrome DevTools. */
export type ProfileFormat = 'pprof' | 'v8';

/** Duration and format of a profile. */
export interface ProfileRequest {
  readonly duration: Millis;
  readonly format: ProfileFormat;
}

/** Profiles of this process. Nothing is collected, and no memory used, outside of a call. */
export interface Profiler {
  /** CPU profile. Ends early when aborted. */
  cpu(request: ProfileRequest, signal: AbortSignal): Promise<string | Uint8Array>;
  /** Allocations that are still in use at the end: names and sizes of the allocating functions, no contents. */
  heap(request: ProfileRequest, signal: AbortSignal): Promise<string | Uint8Array>;
}

/** Bytes between two samples of the heap, on average. */
const interval = 16 * 1024;

/** This process's own, by the inspector inside it; nothing listens. Import it lazily. */
export const inspectorProfiler: Profiler = {
  cpu: ({ duration, format }, signal) =>
    withSession(async (session) => {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
      const time = systemClock.now();
      await pause(duration, signal);
      const { profile } = await session.post('Profiler.stop');
      return format === 'v8' ? JSON.stringify(profile) : gzipSync(encodePprof(fromCpuProfile(profile, time)));
    }),
  heap: ({ duration, format }, signal) =>
    withSession(async (session) => {
      await session.post('HeapProfiler.enable');
      await session.post('HeapProfiler.startSampling', { samplingInterval: interval });
      const time = systemClock.now();
      await pause(duration, signal);
      const { profile } = await session.post('HeapProfiler.stopSampling');
      if (format === 'v8') return JSON.stringify(profile);
      return gzipSync(encodePprof(fromHeapProfile(profile, { interval, time, duration: systemClock.now() - time })));
    }),
};

async function withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
  const session = new Session();
  try {
    session.connect();
    return await use(session);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new HostError('host.profile', `cannot profile this process: ${reason}`, { cause });
  } finally {
    session.disconnect();
  }
}

/** An abort ends the pause, not the profile: it must be stopped in order. */
async function pause(duration: Millis, signal: AbortSignal): Promise<void> {
  await systemClock.sleep(duration, signal).catch(() => undefined);
}

/** Converts a CPU profile of V8 to pprof's terms, with the values of Go's profiles: samples, and nanoseconds of CPU. */
export function fromCpuProfile(profile: Profiler.Profile, time: number): CallProfile {
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const spent = new Map<number, [samples: number, nanoseconds: number]>();
  for (const [index, id] of (profile.samples ?? []).entries()) {
    const [samples, nanoseconds] = spent.get(id) ?? [0, 0];
    spent.set(id, [samples + 1, nanoseconds + Math.max(0, profile.timeDeltas?.[index] ?? 0) * 1000]);
  }
  const toNode = (node: Profiler.ProfileNode): CallNode => ({
    ...placeOf(node.callFrame),
    self: spent.get(node.id) ?? [0, 0],
    children: (node.children ?? [])
      .flatMap((id) => byId.get(id) ?? [])
      .filter(({ callFrame }) => callFrame.functionName !== '(idle)')
      .map(toNode),
  });
  const duration = (profile.endTime - profile.startTime) / 1000;
  const count = profile.samples?.length ?? 0;
  const root = profile.nodes[0];
  return {
    sampleTypes: [
      ['samples', 'count'],
      ['cpu', 'nanoseconds'],
    ],
    period: { of: ['cpu', 'nanoseconds'], value: count === 0 ? 0 : Math.round((duration * 1e6) / count) },
    time,
    duration,
    root: root === undefined ? nothing : toNode(root),
  };
}

/** Converts a sampled heap profile of V8 to pprof's terms; sizes are V8's estimate from its samples. */
export function fromHeapProfile(
  { head }: HeapProfiler.SamplingHeapProfile,
  { interval, time, duration }: { readonly interval: number; readonly time: number; readonly duration: number },
): CallProfile {
  const toNode = (node: HeapProfiler.SamplingHeapProfileNode): CallNode => ({
    ...placeOf(node.callFrame),
    self: [node.selfSize],
    children: node.children.map(toNode),
  });
  return {
    sampleTypes: [['inuse_space', 'bytes']],
    period: { of: ['space', 'bytes'], value: interval },
    time,
    duration,
    root: toNode(head),
  };
}

const nothing: CallNode = { functionName: '(root)', file: '', line: 0, self: [], children: [] };

function placeOf(frame: {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}): Pick<CallNode, 'functionName' | 'file' | 'line'> {
  const functionName = frame.functionName === '' ? '(anonymous)' : frame.functionName;
  return { functionName, file: frame.url, line: frame.lineNumber + 1 };
}

/** One function in a tree of calls, with what was measured in it alone. */
export interface CallNode {
  readonly functionName: string;
  readonly file: string;
  /** Counted from 1; 0 when it is not known. */
  readonly line: number;
  /** One for each of the profile's `sampleTypes`. */
  readonly self: readonly number[];
  readonly children: readonly CallNode[];
}

/** Quantity and unit of a value, such as `cpu` in `nanoseconds`. */
export type ValueType = readonly [type: string, unit: string];

/** A profile in the terms of pprof. */
export interface CallProfile {
  readonly sampleTypes: readonly ValueType[];
  /** Sampled quantity, and its amount between two samples. */
  readonly period: { readonly of: ValueType; readonly value: number };
  /** Wall clock of the beginning, in milliseconds since the Unix epoch, and length in milliseconds. */
  readonly time: number;
  readonly duration: number;
  /** The root itself is no function and has no values. */
  readonly root: CallNode;
}

/** `profile` as the protobuf message `perftools.profiles.Profile` that `go tool pprof` reads, not yet compressed. */
export function encodePprof({ sampleTypes, period, time, duration, root }: CallProfile): Uint8Array {
  const stringTable = new StringTable();
  const valueType = ([type, unit]: ValueType): PprofValueType =>
    new PprofValueType({ type: stringTable.dedup(type), unit: stringTable.dedup(unit) });
  const functions = new Map<string, Function>();
  const idOf = ({ functionName, file, line }: CallNode): number => {
    const key = `${functionName}\n${file}\n${line}`;
    const known = functions.get(key);
    if (known !== undefined) return Number(known.id);
    const id = functions.size + 1;
    const name = stringTable.dedup(functionName);
    functions.set(
      key,
      new Function({ id, name, systemName: name, filename: stringTable.dedup(file), startLine: line }),
    );
    return id;
  };
  const sample = root.children.flatMap((node) => samplesOf(node, [], idOf));
  // A location is a function: V8 says where it begins, not where it was in it.
  const location = [...functions.values()].map(
    ({ id, startLine }) => new Location({ id, line: [new Line({ functionId: id, line: startLine })] }),
  );
  return new Profile({
    stringTable,
    sampleType: sampleTypes.map(valueType),
    sample,
    location,
    function: [...functions.values()],
    timeNanos: BigInt(Math.round(time)) * 1_000_000n,
    durationNanos: Math.round(duration * 1e6),
    periodType: valueType(period.of),
    period: period.value,
  }).encode();
}

/** A sample for each function of the tree in which something was measured; `callers` innermost first. */
function samplesOf(node: CallNode, callers: readonly number[], idOf: (node: CallNode) => number): readonly Sample[] {
  const locationId = [idOf(node), ...callers];
  const own = node.self.some((value) => value > 0) ? [new Sample({ locationId, value: [...node.self] })] : [];
  return [...own, ...node.children.flatMap((child) => samplesOf(child, locationId, idOf))];
}
