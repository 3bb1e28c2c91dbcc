import type { BackendHarness, BackendResult } from '../../src/index.ts';

/** Content of a golden file: the kernel after each change of a scenario, each under the change and its element writes. */
export function dumpText({ dataplane }: BackendHarness, { writes, dumps }: BackendResult): string {
  const texts =
    dataplane.name === 'iptables'
      ? dumps.map((dump, at) => (at === 0 ? dump : changes(dumps[at - 1] ?? '', dump)))
      : dumps;
  return writes.map(({ change, writes: count }, at) => `== ${change} (${count} writes)\n${texts[at]}`).join('\n');
}

/**
 * Dumps of iptables are long, and nearly the same after a change: only lines that went and lines that came, in their order. Each
 * names its chain.
 */
function changes(before: string, after: string): string {
  const [old, now] = [before, after].map((text) => text.split('\n').filter((line) => line !== '')) as [
    string[],
    string[],
  ];
  const gone = without(old, now).map((line) => `- ${line}\n`);
  return [...gone, ...without(now, old).map((line) => `+ ${line}\n`)].join('');
}

/** The lines of one list that are not in the other, as often as they are there once more. */
function without(lines: readonly string[], others: readonly string[]): readonly string[] {
  const left = new Map<string, number>();
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const count = left.get(line) ?? 0;
    left.set(line, count - 1);
    return count <= 0;
  });
}
