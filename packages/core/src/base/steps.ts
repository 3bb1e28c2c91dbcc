/** Work that can pause: yields how many units were done since the last pause, returns the result. A unit is some microseconds. */
export type Steps<T> = Generator<number, T, undefined>;

/** Does all steps without a pause. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** No step of a sort handles more values than this. */
const runLength = 1000;

/** A stable sort in steps: sorts runs of bounded length, then merges neighbours. Returns `values` itself if it is one run. */
export function* sortInSteps<T>(values: T[], compare: (a: T, b: T) => number): Steps<readonly T[]> {
  if (values.length <= runLength) return values.sort(compare);
  let runs: (readonly T[])[] = [];
  for (let at = 0; at < values.length; at += runLength) {
    runs.push(values.slice(at, at + runLength).sort(compare));
    yield runLength;
  }
  while (runs.length > 1) {
    const longer: (readonly T[])[] = [];
    for (let at = 0; at < runs.length; at += 2) {
      const [left = [], right] = [runs[at], runs[at + 1]];
      longer.push(right === undefined ? left : yield* merge(left, right, compare));
    }
    runs = longer;
  }
  return runs[0] ?? values;
}

function* merge<T>(left: readonly T[], right: readonly T[], compare: (a: T, b: T) => number): Steps<readonly T[]> {
  const merged: T[] = [];
  for (let [a, b] = [0, 0]; a < left.length || b < right.length;) {
    const takesLeft = b === right.length || (a < left.length && compare(left[a] as T, right[b] as T) <= 0);
    merged.push((takesLeft ? left[a++] : right[b++]) as T);
    if (merged.length % runLength === 0) yield runLength;
  }
  return merged;
}
