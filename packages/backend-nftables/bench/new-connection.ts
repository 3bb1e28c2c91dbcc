/*
 * Prints what the first packet of a connection through a Service costs: our rules, our rules without counters, our rules with
 * session affinity for clients that were there before and for those that were not (each Service's first flow), one chain per
 * Service as kube-proxy's nftables mode has it, and one static translation as the floor. All shapes stand side by side,
 * each on a node of its own, and take turns. Needs root. Run by `nx run backend-nftables:bench`.
 */
import { fileURLToPath } from 'node:url';
import { type ForwardingTable, noopLogger, seconds } from '@switchyard/core';
import { createLab, type LabHost, type LabNode, type LabPod } from '@switchyard/lab';
import { MessageWriter, openNetlinkSocket } from '@switchyard/native';
import { nftablesBackend } from '../src/index.ts';
import { printTable } from '../src/testing/print-table.ts';
import { skeleton } from '../src/render/skeleton.ts';
import { clusterOf } from './cluster.ts';
import { chainPerService } from './chain-per-service.ts';

const { signal } = new AbortController();
const services = 5000;
const flows = 20_000;
const rounds = 7;
const podCidr = '10.244.0.0/16';
const table = clusterOf(services, 'UDP');
const keeping: ForwardingTable = {
  ...table,
  services: new Map(
    [...table.services].map(([key, service]) => [
      key,
      { ...service, sessionAffinity: { kind: 'clientIP', timeout: seconds(10_800) } },
    ]),
  ),
};

async function run(host: LabHost, file: string, args: readonly string[], stdin = ''): Promise<string> {
  const result = await host.run(file, args, { stdin, timeout: seconds(60) });
  if (result.exitCode !== 0)
    throw new Error(`${file} ${args.join(' ')} in ${host.name}: ${result.stderr.slice(0, 500)}`);
  return result.stdout;
}

async function loadOurs(node: LabNode, content: ForwardingTable = table): Promise<void> {
  const host = { logger: noopLogger, netns: `/run/netns/${node.namespace}` };
  await using backend = await nftablesBackend.open(host, 'IPv4', signal);
  const outcome = await backend.apply({ table: content, scope: { kind: 'full' } }, signal);
  if (outcome.status !== 'applied') throw new Error(`our rules were not applied: ${JSON.stringify(outcome)}`);
}

const floor = `table ip floor {
  chain nat-prerouting {
    type nat hook prerouting priority -100
    ip daddr 10.0.0.0/8 udp dport 80 dnat to 11.0.0.1:8080
  }
}
`;

/** Programs on each node. */
const shapes: readonly {
  readonly name: string;
  readonly load: (node: LabNode) => Promise<unknown>;
  /** Before each round. */
  readonly forget?: (node: LabNode) => Promise<unknown>;
}[] = [
  { name: 'switchyard', load: (node) => loadOurs(node) },
  { name: 'switchyard, affinity, client known', load: (node) => loadOurs(node, keeping) },
  {
    name: 'switchyard, affinity, a quarter new',
    load: (node) => loadOurs(node, keeping),
    forget: (node) => run(node, 'nft', ['flush', 'map', 'inet', 'switchyard', 'affinity4']),
  },
  {
    name: 'switchyard without counters',
    load: async (node) => {
      // The birthmark is that of the rules with counters, so the backend takes the table for its own.
      await run(node, 'nft', ['-f', '-'], printTable(skeleton('switchyard')).replaceAll(' counter;', ''));
      await loadOurs(node);
    },
  },
  { name: 'one chain per Service', load: (node) => run(node, 'nft', ['-f', '-'], chainPerService(table, podCidr)) },
  { name: 'one static translation', load: (node) => run(node, 'nft', ['-f', '-'], floor) },
];

/** Endpoints are nowhere: packets end in a bridge without ports, which counts them. */
async function prepare(node: LabNode, load: (node: LabNode) => Promise<unknown>): Promise<LabPod> {
  const pod = await lab.addPod(node, `sender-${node.name}`);
  await run(node, 'ip', ['link', 'add', 'sink', 'type', 'bridge']);
  await run(node, 'ip', ['link', 'set', 'sink', 'arp', 'off', 'up']);
  await run(node, 'ip', ['route', 'add', '11.0.0.0/8', 'dev', 'sink']);
  await load(node);
  return pod;
}

async function sunk(node: LabNode): Promise<number> {
  const [link] = JSON.parse(await run(node, 'ip', ['-j', '-s', 'link', 'show', 'sink'])) as readonly [
    { readonly stats64: { readonly tx: { readonly packets: number } } },
  ];
  return link.stats64.tx.packets;
}

/** Forgets all connections of a node. */
function forgetFlows(node: LabNode): void {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns: `/run/netns/${node.namespace}` });
  const writer = new MessageWriter();
  writer.beginMessage({ type: 0x102, flags: 0x1, sequence: 1 }); // IPCTNL_MSG_CT_DELETE without a tuple: all
  writer.netfilterHeader(0, 0);
  writer.endMessage();
  socket.send(writer.bytes());
}

/** Microseconds of CPU per first packet. */
async function measure(pod: LabPod): Promise<number> {
  forgetFlows(pod.node);
  const before = await sunk(pod.node);
  const script = fileURLToPath(new URL('raw-sender.pl', import.meta.url));
  const sender = ['-c', '1', 'perl', script, pod.addresses.IPv4 ?? '', String(flows), String(services)];
  const nanoseconds = Number(await run(pod, 'taskset', sender));
  const arrived = (await sunk(pod.node)) - before;
  // Neighbours and the like may send a packet of their own.
  if (arrived < flows || arrived > flows + 10)
    throw new Error(`${pod.node.name}: ${arrived} of ${flows} were translated`);
  return nanoseconds / flows / 1000;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const line = (values: readonly string[]): string => `| ${values.join(' | ')} |\n`;

await using lab = await createLab({ name: 'nftn', nodes: shapes.length, ipFamilies: ['IPv4'] }, signal);
const pods: LabPod[] = [];
for (const [index, { load }] of shapes.entries()) pods.push(await prepare(lab.nodes[index] as LabNode, load));
const times: number[][] = shapes.map(() => []);
for (let round = -1; round < rounds; round++) {
  for (const [index, pod] of pods.entries()) {
    await shapes[index]?.forget?.(pod.node);
    const time = await measure(pod);
    if (round >= 0) times[index]?.push(time);
  }
}
const [ours, , , , theirs, bottom] = times.map(median) as [number, number, number, number, number, number];
process.stdout.write(`${services} Services x 10, ${flows} new UDP flows per round, median of ${rounds} rounds\n\n`);
process.stdout.write(
  line(['shape', 'CPU per new flow', 'least', 'above the floor']) + line(['---', '---', '---', '---']),
);
for (const [index, { name }] of shapes.entries()) {
  const values = times[index] ?? [];
  const cells = [median(values), Math.min(...values), median(values) - bottom].map((value) => `${value.toFixed(2)} µs`);
  process.stdout.write(line([name, ...cells]));
}
const above = (ours - bottom) / (theirs - bottom);
process.stdout.write(
  `\nswitchyard / one chain per Service: ${(ours / theirs).toFixed(3)}; above the floor: ${above.toFixed(3)}\n`,
);
