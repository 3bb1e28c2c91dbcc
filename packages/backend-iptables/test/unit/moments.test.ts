import { type Flow, type ForwardingTable, parseIp, parsePort } from '@switchyard/core';
import type { TracedVerdict } from '@switchyard/core/testing';
import type { CommandOptions, CommandResult } from '@switchyard/host';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FakeIptables, tracePacket } from '../../src/testing/index.ts';
import { anyTable } from './any-table.ts';
import { Driven } from './support.ts';

const frontends: readonly (readonly [address: string, port: number])[] = [
  ...[10, 11, 12, 13, 14].map((last) => [`10.96.0.${last}`, 80] as const),
  ...['198.51.100.7', '198.51.100.8', '198.51.100.9'].map((address) => [address, 80] as const),
  ['172.18.0.2', 30_080],
  ['172.18.0.2', 30_081],
];
const senders: readonly (readonly [from: Flow['from'], source: string])[] = [
  ['pod', '10.244.1.200'],
  ['outside', '203.0.113.5'],
  ['outside', '192.0.2.77'],
];
const flows: readonly Flow[] = frontends.flatMap(([address, port]) =>
  senders.map(([from, source]): Flow => ({
    from,
    source: parseIp(source),
    destination: parseIp(address),
    destinationPort: parsePort(port),
    protocol: 'TCP',
    destinationIsLocal: address === '172.18.0.2',
  })),
);

/** Outcome of every flow, one after another. */
function verdicts(fake: FakeIptables): readonly TracedVerdict[] {
  return flows.map((flow) => tracePacket(fake, flow));
}

/** Lets a fake show the moments between two transactions of a restore. */
function watch(fake: FakeIptables, look: () => void): void {
  const run = fake.run.bind(fake);
  fake.run = async (file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> => {
    if (!file.endsWith('-restore')) return run(file, args, options);
    const text = [...(options.stdin ?? '')].join('');
    let result: CommandResult | undefined;
    for (const transaction of text.split(/(?<=^COMMIT\n)/m)) {
      result = await run(file, args, { ...options, stdin: transaction });
      expect(result.exitCode).toBe(0);
      look();
    }
    return result ?? run(file, args, options);
  };
}

/** Describes a packet whose outcome at a moment differs from both before and afterwards, or whose outcome is unspecified. */
function faults(
  before: readonly TracedVerdict[],
  after: readonly TracedVerdict[],
  moments: readonly (readonly TracedVerdict[])[],
): readonly string[] {
  return moments.flatMap((moment, at) =>
    moment.flatMap((now, index) => {
      const kinds = [before[index]?.kind, after[index]?.kind];
      const isServed = kinds.every((kind) => kind === 'forward');
      const isClosed = kinds.every((kind) => kind !== 'forward');
      const isRight = (isServed ? now.kind === 'forward' : true) && (isClosed ? now.kind !== 'forward' : true);
      if (isRight && (now.kind !== 'pass' || kinds.includes('pass'))) return [];
      const { source = '', destination = '', destinationPort = 0 } = flows[index] ?? {};
      const way = `${source} to ${destination}:${destinationPort}`;
      return [`transaction ${at + 1}: ${way}: ${now.kind}, between ${kinds.join(' and ')}`];
    }),
  );
}

async function momentsBetween(first: ForwardingTable, second: ForwardingTable, isFresh: boolean) {
  const iptables = new FakeIptables();
  let driven = await Driven.open({ iptables });
  await driven.full(first);
  const before = verdicts(iptables);
  const moments: (readonly TracedVerdict[])[] = [];
  if (isFresh) driven = await Driven.open({ iptables });
  watch(iptables, () => moments.push(verdicts(iptables)));
  await (isFresh ? driven.full(second) : driven.next(second));
  return { before, after: verdicts(iptables), moments };
}

test.each([
  ['by the process that wrote what was there', false],
  ['by one that takes it over', true],
] as const)(
  'a change %s has no moment in which what is served before and after is not, or what is refused is served',
  async (_, isFresh) => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(anyTable, anyTable, async (first, second) => {
        const { before, after, moments } = await momentsBetween(first, second, isFresh);
        seen += moments.length;
        expect(faults(before, after, moments)).toEqual([]);
      }),
      { numRuns: 150 },
    );
    expect(seen).toBeGreaterThan(60);
  },
  60_000, // 4 to 5 s alone, more beside other suites
);
