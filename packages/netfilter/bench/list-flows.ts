/**
 * Lists the flows of connection trackings of several sizes, and prints time, CPU, and the most CPU that was used
 * without a turn of the event loop. Needs root; makes a network namespace and removes it.
 */
import { execFileSync } from 'node:child_process';
import { type Clock, systemClock } from '@switchyard/core';
import { createFlowTable, type FlowQuery } from '../src/index.ts';
import { insertFlows, type MadeFlows } from '../test/insert-flows.ts';

const name = `swy-flowbench-${process.pid}`;
const netns = `/run/netns/${name}`;
const { signal } = new AbortController();
const rounds = 5;

interface Row {
  readonly title: string;
  readonly made: Pick<MadeFlows, 'protocol' | 'count'>;
  readonly query?: Partial<FlowQuery>;
  readonly maxFiltered?: number;
}

const none = (): boolean => false;
const rows: readonly Row[] = [
  { title: 'empty', made: { protocol: 'udp', count: 0 } },
  { title: '30,000 TCP', made: { protocol: 'tcp', count: 30_000 } },
  { title: '100,000 TCP', made: { protocol: 'tcp', count: 100_000 } },
  { title: '100,000 TCP, kernel filters', made: { protocol: 'tcp', count: 100_000 }, maxFiltered: Infinity },
  {
    title: '100,000 UDP to other ports',
    made: { protocol: 'udp', count: 100_000 },
    query: { destinationPorts: new Set([1]) },
  },
  {
    title: '100,000 UDP to our port, none wanted',
    made: { protocol: 'udp', count: 100_000 },
    query: { isWanted: none },
  },
  { title: '100,000 UDP, all wanted', made: { protocol: 'udp', count: 100_000 } },
];

for (const row of rows) {
  execFileSync('ip', ['netns', 'add', name]);
  try {
    insertFlows({ netns, destinationPort: 53, ...row.made });
    const results: (readonly [wall: number, cpu: number, longest: number])[] = [];
    for (let round = 0; round < rounds; round++) results.push(await measure(row));
    const [wall, cpu, longest] = [0, 1, 2].map((column) => median(results.map((result) => result[column] ?? 0)));
    console.log(`${row.title}: ${wall} ms, ${cpu} ms of CPU, ${longest} ms of it without a turn of the event loop`);
  } finally {
    execFileSync('ip', ['netns', 'delete', name]);
  }
}

/** Milliseconds: of wall clock, of CPU, and of CPU in the longest stretch between two turns of the event loop. */
async function measure({ query, maxFiltered }: Row): Promise<readonly [number, number, number]> {
  let longest = 0;
  let resumed = cpuTime();
  const pause = (): void => void (longest = Math.max(longest, cpuTime() - resumed));
  const clock: Clock = {
    ...systemClock,
    sleep: async (duration, stop) => {
      pause();
      await systemClock.sleep(duration, stop);
      resumed = cpuTime();
    },
  };
  const table = createFlowTable({ clock, netns, ...(maxFiltered === undefined ? {} : { maxFiltered }) });
  const [start, cpu] = [performance.now(), (resumed = cpuTime())];
  for await (const part of table.list({ ipFamily: 'IPv4', ...query }, signal)) void part;
  pause();
  return [performance.now() - start, cpuTime() - cpu, longest];
}

function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor(sorted.length / 2)] ?? 0) * 10) / 10;
}
