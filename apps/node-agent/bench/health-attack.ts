/*
 * Attacks the health ports of a node agent with hostile clients, and prints how long the kubelet's probe, a scrape and
 * an endpoint change wait meanwhile and afterwards. Needs root; everything is in a lab of network namespaces. Run:
 * ./dev bench health-attack [--agent PROGRAM] [--kube-proxy PROGRAM]
 * `--agent` takes another launcher, such as that of an older checkout; `--kube-proxy` measures a kube-proxy, too.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { seconds, systemClock } from '@switchyard/core';
import {
  clusterCidrs,
  type LabCluster,
  type LabHost,
  type LabNode,
  type LabProcess,
  startCluster,
} from '@switchyard/lab';
import { createMovingService, type MovingService } from './moving-service.ts';

const clients = fileURLToPath(new URL('./health-attack-clients.ts', import.meta.url));
const { signal } = new AbortController();
/** Length of an attack. */
const duration = seconds(10);

interface Attack {
  readonly name: string;
  readonly connections: number;
  readonly requests: number;
  /** Empty: the first half of a request. */
  readonly path: string;
  readonly port: number;
  /** Where the clients are. */
  readonly from: 'outside' | 'node';
}

const attacks: readonly Attack[] = [
  {
    name: '4 x 69,400 unread GET /healthz',
    connections: 4,
    requests: 69_400,
    path: '/healthz',
    port: 10_256,
    from: 'outside',
  },
  {
    name: '300 x 300 unread GET /metrics',
    connections: 300,
    requests: 300,
    path: '/metrics',
    port: 10_249,
    from: 'node',
  },
  { name: '1,010 half-sent requests', connections: 1010, requests: 1, path: '', port: 10_256, from: 'outside' },
  { name: '1,010 half-sent from the node', connections: 1010, requests: 1, path: '', port: 10_256, from: 'node' },
];

/** Milliseconds; null: no answer. */
interface Answers {
  readonly livez: readonly (number | null)[];
  readonly metrics: readonly (number | null)[];
}

type Start = (cluster: LabCluster, node: LabNode) => LabProcess;

async function measure(title: string, start: Start): Promise<void> {
  for (const attack of attacks) {
    await using cluster = await startCluster({ name: 'hattack', nodes: 1, ipFamilies: ['IPv4'] }, signal);
    const [node] = cluster.lab.nodes;
    if (node === undefined) throw new Error('the lab has no node');
    const proxy = start(cluster, node);
    await untilHealthy(node);
    await using service = await createMovingService(cluster, node, signal);
    console.log(`${title}: ${attack.name}: ${await attackOnce(cluster, node, { attack, proxy, service })}`);
    await proxy.stop();
  }
}

interface Running {
  readonly attack: Attack;
  readonly proxy: LabProcess;
  readonly service: MovingService;
}

async function attackOnce({ lab }: LabCluster, node: LabNode, { attack, proxy, service }: Running): Promise<string> {
  const from: LabHost = attack.from === 'node' ? node : lab.client;
  const address = attack.port === 10_249 ? '127.0.0.1' : (node.addresses.IPv4 ?? '');
  const { connections, requests, path, port } = attack;
  const attackers = from.spawn(process.execPath, [
    clients,
    'attack',
    JSON.stringify({ address, port, connections, requests, path }),
  ]);
  await systemClock.sleep(seconds(0.5), signal);
  const [during, changes] = await Promise.all([ask(node, duration), service.move(10)]);
  const memory = rssOf(proxy.pid);
  await attackers.stop(seconds(0));
  const after = await ask(node, seconds(3));
  return [
    `/livez during ${spread(during.livez)}, after ${spread(after.livez)}`,
    `/metrics during ${spread(during.metrics)}, after ${spread(after.metrics)}`,
    `endpoint changes during ${spread(changes)}`,
    `peak RSS ${memory} MB`,
  ].join('; ');
}

/** Asks as the kubelet does, from the node: one probe after the other, each on a connection of its own. */
async function ask(node: LabNode, time: number): Promise<Answers> {
  const options = JSON.stringify({ address: node.addresses.IPv4, time });
  const { stdout, stderr } = await node.run(process.execPath, [clients, 'probe', options], { timeout: seconds(240) });
  if (stdout === '') throw new Error(`the prober has failed: ${stderr}`);
  return JSON.parse(stdout) as Answers;
}

async function untilHealthy(node: LabNode): Promise<void> {
  for (let tries = 0; tries < 60; tries++) {
    const { livez, metrics } = await ask(node, 0);
    if (typeof livez[0] === 'number' && typeof metrics[0] === 'number') return systemClock.sleep(seconds(2), signal);
    await systemClock.sleep(seconds(0.5), signal);
  }
  throw new Error('the proxy does not answer /livez and /metrics');
}

function spread(answers: readonly (number | null)[]): string {
  const times = answers.filter((time) => time !== null).sort((a, b) => a - b);
  const none = answers.length - times.length;
  const ms = (time: number | null | undefined): string => (typeof time !== 'number' ? '-' : `${time.toFixed(0)} ms`);
  return `${ms(times[times.length >> 1])} (first ${ms(answers[0])}, longest ${ms(times.at(-1))}, ${none} of ${answers.length} none)`;
}

function rssOf(pid: number): string {
  const line = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return (Number(line?.[1] ?? Number.NaN) / 1024).toFixed(0);
}

function startKubeProxy(program: string): Start {
  return ({ insideKubeconfig }, node) =>
    node.spawn(program, [
      `--kubeconfig=${insideKubeconfig}`,
      `--hostname-override=${node.nodeName}`,
      '--proxy-mode=nftables',
      `--cluster-cidr=${clusterCidrs.IPv4}`,
      '--healthz-bind-address=0.0.0.0:10256',
      '--metrics-bind-address=127.0.0.1:10249',
      '--conntrack-max-per-core=0', // it is the whole machine's
      '--conntrack-min=0',
      '--oom-score-adj=0',
    ]);
}

const { values } = parseArgs({ options: { agent: { type: 'string' }, 'kube-proxy': { type: 'string' } } });
const args = ['--metrics-bind-address=127.0.0.1:10249'];
const program = values.agent === undefined ? {} : { program: values.agent };
await measure('agent', (cluster, node) => cluster.startAgent(node, { args, ...program }));
const kubeProxy = values['kube-proxy'];
if (kubeProxy !== undefined) await measure('kube-proxy', startKubeProxy(kubeProxy));
