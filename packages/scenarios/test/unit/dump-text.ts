import type { BackendHarness, BackendResult } from '../../src/index.ts';
import { without } from './most-writes.ts';

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
