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

/** What a value counts, and in which unit, such as `cpu` in `nanoseconds`. */
export type ValueType = readonly [type: string, unit: string];

/** A profile in the terms of pprof. */
export interface CallProfile {
  readonly sampleTypes: readonly ValueType[];
  /** What is sampled, and how much of it lies between two samples. */
  readonly period: { readonly of: ValueType; readonly value: number };
  /** Wall clock of the beginning, in milliseconds since the Unix epoch, and length in milliseconds. */
  readonly time: number;
  readonly duration: number;
  /** The root itself is no function and has no values. */
  readonly root: CallNode;
}

/** `profile` as the protobuf message `perftools.profiles.Profile` that `go tool pprof` reads, not yet compressed. */
export function encodePprof(profile: CallProfile): Uint8Array {
  const texts = new Numbering<string>((text) => text);
  texts.of(''); // number 0 must be the empty text
  const functions = new Numbering<CallNode>((node) => `${node.functionName}\n${node.file}\n${node.line}`);
  const valueType = ([type, unit]: ValueType): Bytes => [...int(1, texts.of(type)), ...int(2, texts.of(unit))];
  const samples = profile.root.children.flatMap((node) => samplesOf(node, [], functions));
  const body = [
    ...profile.sampleTypes.flatMap((one) => message(1, valueType(one))),
    ...samples.flatMap((one) => message(2, one)),
    // A location is a function: V8 says where it begins, not where it was in it.
    ...functions.all.flatMap((node, at) => message(4, [...int(1, at + 1), ...message(4, lineOf(node, at + 1))])),
    ...functions.all.flatMap((node, at) => message(5, functionOf(node, at + 1, texts))),
    ...int(9, BigInt(Math.round(profile.time)) * 1_000_000n),
    ...int(10, Math.round(profile.duration * 1e6)),
    ...message(11, valueType(profile.period.of)),
    ...int(12, profile.period.value),
  ];
  const table = texts.all.flatMap((text) => message(6, [...new TextEncoder().encode(text)]));
  return Uint8Array.from([...body, ...table]);
}

type Bytes = readonly number[];

/** Numbers values from 0 on, equal ones the same. */
class Numbering<T> {
  readonly all: T[] = [];
  readonly #keyOf: (value: T) => string;
  readonly #numbers = new Map<string, number>();

  constructor(keyOf: (value: T) => string) {
    this.#keyOf = keyOf;
  }

  of(value: T): number {
    const key = this.#keyOf(value);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.all.push(value) - 1;
    this.#numbers.set(key, number);
    return number;
  }
}

/** A sample for each function of the tree in which something was measured; `callers` innermost first. */
function samplesOf(node: CallNode, callers: readonly number[], functions: Numbering<CallNode>): readonly Bytes[] {
  const stack = [functions.of(node) + 1, ...callers];
  const own = node.self.some((value) => value > 0) ? [[...packed(1, stack), ...packed(2, node.self)]] : [];
  return [...own, ...node.children.flatMap((child) => samplesOf(child, stack, functions))];
}

function lineOf({ line }: CallNode, id: number): Bytes {
  return [...int(1, id), ...int(2, line)];
}

function functionOf({ functionName, file, line }: CallNode, id: number, texts: Numbering<string>): Bytes {
  const name = texts.of(functionName);
  return [...int(1, id), ...int(2, name), ...int(3, name), ...int(4, texts.of(file)), ...int(5, line)];
}

/** A field with a number of its own; 0 is the default and needs no byte. */
function int(field: number, value: number | bigint): Bytes {
  return value === 0 || value === 0n ? [] : [...varint(field << 3), ...varint(value)];
}

function packed(field: number, values: readonly number[]): Bytes {
  return message(field, values.flatMap(varint));
}

function message(field: number, content: Bytes): Bytes {
  return [...varint((field << 3) | 2), ...varint(content.length), ...content];
}

/** Seven bits to a byte, the lowest first; not for negative numbers. */
function varint(value: number | bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt(value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return [...bytes, Number(rest)];
}
