import { Function, Line, Location, Profile, Sample, StringTable, ValueType as PprofValueType } from 'pprof-format';

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
