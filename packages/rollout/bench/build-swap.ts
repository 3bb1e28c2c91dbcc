// One build of the agent takes over from another and back, in each of our five modes, while requests go on and connections stay open.
// Prints what was lost, what the second one wrote, and the resident memory of both. Needs root. Exit status 1: something was lost.
//   --beside PROGRAM (bin/switchyard-agent of another checkout, with its bundle; default: this one)  --services N (200)  --swaps N (4)
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ipFamilies, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type AgentMode,
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type ProbeConnection,
  type Prober,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { textTable } from '../src/report/report-html.ts';
import { percentile } from './percentile.ts';
import { rssOf } from './process-figures.ts';

const { values } = parseArgs({
  options: {
    beside: { type: 'string' },
    services: { type: 'string', default: '200' },
    swaps: { type: 'string', default: '4' },
  },
});

interface SwapMode {
  readonly name: string;
  readonly proxyMode: AgentMode;
  readonly args: readonly string[];
}

const modes: readonly SwapMode[] = [
  { name: 'nftables', proxyMode: 'nftables', args: [] },
  { name: 'iptables-nft', proxyMode: 'iptables', args: ['--switchyard-iptables-variant=nft'] },
  { name: 'iptables-legacy', proxyMode: 'iptables', args: ['--switchyard-iptables-variant=legacy'] },
  { name: 'ebpf-tc', proxyMode: 'ebpf', args: ['--switchyard-ebpf-north-south=tc'] },
  { name: 'ebpf-nftables', proxyMode: 'ebpf', args: ['--switchyard-ebpf-north-south=nftables'] },
];

/** Results of one mode. */
interface Swaps {
  readonly requests: number;
  readonly lost: number;
  readonly held: number;
  readonly broken: number;
  /** Writes of an agent that found the other build's rules, summed over families and swaps. */
  readonly writes: number;
  /** MB, of each build: this checkout's, the other's. */
  readonly rss: readonly [readonly number[], readonly number[]];
}

const nodePort = 30080;
/** Long enough for what a start leaves behind to be given back. */
const settleTime = millis(2500);

async function exposeEcho(cluster: LabCluster, node: LabNode, services: number, signal: AbortSignal): Promise<void> {
  const pod = await cluster.lab.addPod(node, 'echo');
  startEchoServer(pod, { pod: 'echo', tcp: [8080], udp: [8080] });
  for (let index = 0; index < services; index++) {
    const name = `echo${index}`;
    const port = { name: 'tcp', port: 80, protocol: 'TCP' as const };
    const metadata = { name, namespace: 'default' };
    const ports = [index === 0 ? { ...port, nodePort } : port];
    const spec = { type: index === 0 ? ('NodePort' as const) : ('ClusterIP' as const), ports };
    await cluster.api.create(
      apiResources.services,
      { metadata, spec: { ...spec, ipFamilyPolicy: 'PreferDualStack' } },
      signal,
    );
    for (const addressType of ipFamilies) {
      const labels = { 'kubernetes.io/service-name': name };
      const slice = {
        metadata: { name: `${name}-${addressType.toLowerCase()}`, namespace: 'default', labels },
        addressType,
        ports: [{ name: 'tcp', port: 8080, protocol: 'TCP' as const }],
        endpoints: [
          { addresses: [pod.addresses[addressType] ?? ''], nodeName: node.nodeName, conditions: { ready: true } },
        ],
      };
      await cluster.api.create(apiResources.endpointSlices, slice, signal);
    }
  }
}

function writesOf(agent: LabProcess): number {
  const lines = readFileSync(agent.logFile, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'));
  const applied = lines.map((line) => JSON.parse(line) as { msg?: string; writes?: number });
  return applied.filter(({ msg }) => msg === 'applied').reduce((sum, { writes = 0 }) => sum + writes, 0);
}

async function hold(client: Prober, node: LabNode): Promise<readonly ProbeConnection[]> {
  const opened = await Promise.all(
    ipFamilies.map((family) => client.open({ protocol: 'tcp', address: node.addresses[family] ?? '', port: nodePort })),
  );
  return opened.flatMap(({ connection }) => (connection === undefined ? [] : [connection]));
}

async function swapInMode(
  mode: SwapMode,
  programs: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<Swaps> {
  await using cluster = await startCluster({ name: 'swap', nodes: 1, ipFamilies }, signal);
  const [node] = cluster.lab.nodes as [LabNode];
  await exposeEcho(cluster, node, Number(values.services), signal);
  await using client = await createProber(cluster.lab.client, signal);
  const start = async (program: string | undefined): Promise<LabProcess> => {
    const options = { proxyMode: mode.proxyMode, args: mode.args, ...(program === undefined ? {} : { program }) };
    const agent = cluster.startAgent(node, options);
    await waitForAgents(cluster.lab, [agent], signal);
    return agent;
  };
  let agent = await start(programs.at(-1));
  const ask = { protocol: 'tcp', address: node.addresses.IPv4 ?? '', port: nodePort } as const;
  await client.awaitAnswer(ask, { by: 'echo', interval: 50, timeout: 20_000 });
  const held = await hold(client, node);
  const rss: [number[], number[]] = [[], []];
  const stop = new AbortController();
  const load = askUntil(client, node, stop.signal);
  let writes = 0;
  for (let swap = 0; swap < Number(values.swaps); swap++) {
    const turn = swap % 2;
    process.kill(agent.pid, 'SIGKILL');
    await agent.ended;
    agent = await start(programs[turn]);
    await systemClock.sleep(settleTime, signal);
    writes += writesOf(agent);
    rss[turn === 0 ? 0 : 1].push(rssOf(agent.pid));
  }
  stop.abort();
  const { requests, lost } = await load;
  const echoes = await Promise.all(held.map((connection) => connection.exchange('still there?')));
  const broken = ipFamilies.length - echoes.filter(({ status }) => status === 'echoed').length;
  return { requests, lost, held: held.length, broken, writes, rss };
}

/** New connections in both families, one every 5 ms, until stopped. */
async function askUntil(client: Prober, node: LabNode, stop: AbortSignal): Promise<{ requests: number; lost: number }> {
  const sent: Promise<boolean>[] = [];
  while (!stop.aborted) {
    const family = ipFamilies[sent.length % ipFamilies.length] ?? 'IPv4';
    const request = { protocol: 'tcp', address: node.addresses[family] ?? '', port: nodePort } as const;
    sent.push(client.probe(request).then(({ status }) => status === 'answered'));
    await systemClock.sleep(millis(5), new AbortController().signal);
  }
  const answered = await Promise.all(sent);
  return { requests: sent.length, lost: answered.filter((isAnswered) => !isAnswered).length };
}

async function main(): Promise<void> {
  const { beside } = values;
  const { signal } = new AbortController();
  const rows: (readonly string[])[] = [
    ['mode', 'requests', 'lost', 'held', 'broken', 'writes', 'RSS here, MB', 'RSS beside, MB', 'ratio'],
  ];
  for (const mode of modes) {
    process.stderr.write(`bench: ${mode.name}\n`);
    // The other build begins, so that the first to take over is this checkout's.
    const seen = await swapInMode(mode, [undefined, beside], signal);
    const [ours = Number.NaN, others = Number.NaN] = seen.rss.map((all) => percentile(all, 0.5));
    const figures = [seen.requests, seen.lost, seen.held, seen.broken, seen.writes].map(String);
    rows.push([mode.name, ...figures, ours.toFixed(1), others.toFixed(1), (ours / others).toFixed(2)]);
    if (seen.lost + seen.broken > 0) process.exitCode = 1;
  }
  console.log(textTable(rows));
}

await main();
