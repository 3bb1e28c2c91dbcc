import type { RunDiff } from './diff.ts';
import type { DiffSide } from './diff-side.ts';

/** A comparison for other programs; its schema has a version of its own. */
export function diffJson(diff: RunDiff): string {
  const { a, b, equalChecks, sharedCases, differences, unstable, oneSided } = diff;
  const written = {
    schema: 'switchyard-conformance-diff/1',
    a: sideJson(a),
    b: sideJson(b),
    equalChecks,
    sharedCases,
    differences,
    unstable,
    oneSided,
  };
  return `${JSON.stringify(written, undefined, 1)}\n`;
}

function sideJson({ file, column }: DiffSide): Record<string, unknown> {
  const [first] = column.runs;
  return {
    file,
    proxy: first?.proxy,
    cell: first?.cell,
    target: first?.target,
    kernel: first?.kernel,
    rounds: column.rounds,
  };
}
