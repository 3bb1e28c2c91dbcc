import type { HeapProfiler, Profiler } from 'node:inspector';
import type { CallNode, CallProfile } from './pprof.ts';

/** Frames of V8 in which the process does no work. */
const notWork = new Set(['(idle)']);

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
      .filter(({ callFrame }) => !notWork.has(callFrame.functionName))
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
