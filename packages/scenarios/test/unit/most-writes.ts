import type { BackendHarness, BackendResult } from '../../src/index.ts';

/** Text of the kernel before and after a change. */
interface Change {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/**
 * Element writes that a change may take at most, from what differs in the kernel's text. In the examples the exact numbers are part of
 * the golden dumps; the factors leave room for elements that a new scenario combines in another way, not for rewriting a Service.
 */
const limits: Readonly<Record<string, (change: Change) => number>> = {
  // One line of text names all endpoints of a policy. Each has an element, and the last one takes the place of a removed one.
  nftables: (change) => 3 * changedLines(change),
  // One rule or set entry is one line.
  iptables: (change) => 1.5 * changedLines(change),
  // A change of a Service's endpoints writes a new range of slots, for each of two policies.
  ebpf: ({ before, after }) =>
    4 * changedLines({ before, after }) + 2 * Math.max(endpointsOf(before), endpointsOf(after)),
};

/** Changes of a run that wrote more elements than their effect needs, or wrote without any effect. Empty: none. */
export function excessWrites(
  { name }: Pick<BackendHarness, 'name'>,
  { writes, dumps }: BackendResult,
): readonly string[] {
  const limit = limits[name];
  if (limit === undefined) return [`there is no limit for the backend ${name}`];
  return writes.flatMap(({ change, writes: count }, index) => {
    const [before, after] = [linesOf(dumps[index - 1] ?? ''), linesOf(dumps[index] ?? '')];
    // At the start, a line has as many elements as words at most.
    const most = index === 0 ? wordsOf(after) : limit({ before, after });
    return count <= most ? [] : [`${change}: ${count} writes, and what changed in the kernel needs ${most} at most`];
  });
}

function changedLines({ before, after }: Change): number {
  return without(before, after).length + without(after, before).length;
}

function endpointsOf(lines: readonly string[]): number {
  return lines.filter((line) => line.startsWith('endpoint ')).length;
}

function wordsOf(lines: readonly string[]): number {
  return lines.flatMap((line) => line.split(/[\s,]+/)).length;
}

function linesOf(dump: string): readonly string[] {
  return dump.split('\n').filter((line) => line !== '');
}

/** Lines of one list that the other does not have, counting repeated ones. */
export function without(lines: readonly string[], others: readonly string[]): readonly string[] {
  const left = new Map<string, number>();
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const count = left.get(line) ?? 0;
    left.set(line, count - 1);
    return count <= 0;
  });
}
