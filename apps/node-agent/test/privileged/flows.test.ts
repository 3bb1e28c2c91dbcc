import { once } from 'node:events';
import { cp, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type IpFamily, ipFamilies, millis, systemClock } from '@switchyard/core';
import { apiResources, type EndpointSlice } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabHost,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { createFlowTable, type FlowTable, type TrackedFlow } from '@switchyard/netfilter';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LogLine, readLog, until } from './agent-log.ts';
import type { SenderFigures } from './udp-sender.ts';

const { signal } = new AbortController();
const sender = fileURLToPath(new URL('./udp-sender.ts', import.meta.url));
const bundle = fileURLToPath(new URL('../../dist-bundle', import.meta.url));
const nodePort = 30_053;

let cluster: LabCluster;
let node: LabNode;
let agent: LabProcess | undefined;
let flows: FlowTable;
let pods: Readonly<Record<'one' | 'two' | 'asker' | 'foreign', LabPod>>;
let inside: Prober;
let outside: Prober;
const clusterIps: Partial<Record<IpFamily, string>> = {};

beforeAll(async () => {
  cluster = await startCluster({ name: 'agflows', nodes: 1, ipFamilies }, signal);
  const { lab } = cluster;
  [node] = lab.nodes as [LabNode];
  flows = createFlowTable({ clock: systemClock, netns: `/run/netns/${node.namespace}` });
  const add = (name: string): Promise<LabPod> => lab.addPod(node, name);
  pods = { one: await add('one'), two: await add('two'), asker: await add('asker'), foreign: await add('foreign') };
  for (const name of ['one', 'two'] as const) startEchoServer(pods[name], { pod: name, udp: [5353] });
  startEchoServer(pods.foreign, { pod: 'foreign', udp: [53, nodePort] });
  [inside, outside] = await Promise.all([createProber(pods.asker, signal), createProber(lab.client, signal)]);
  const ports = [{ name: 'dns', protocol: 'UDP' as const, port: 53, targetPort: 5353, nodePort }];
  const service = { metadata: { name: 'dns', namespace: 'default' } };
  const spec = { type: 'NodePort' as const, ipFamilyPolicy: 'PreferDualStack' as const, ports };
  const created = await cluster.api.create(apiResources.services, { ...service, spec }, signal);
  for (const ip of created.spec?.clusterIPs ?? []) clusterIps[ip.includes(':') ? 'IPv6' : 'IPv4'] = ip;
  for (const family of ipFamilies)
    await cluster.api.create(apiResources.endpointSlices, sliceTo(family, ['one']), signal);
});

afterAll(async () => {
  await Promise.all([inside, outside].map((prober) => prober?.[Symbol.asyncDispose]()));
  await cluster?.[Symbol.asyncDispose]();
});

const modes = {
  nftables: [],
  iptables: ['--proxy-mode=iptables', '--iptables-min-sync-period=10ms'],
} as const;

/** An agent of this mode takes over from the one before. */
async function runAgent(mode: keyof typeof modes): Promise<void> {
  await agent?.stop();
  for (const family of ipFamilies) await leadTo(family, 'one');
  agent = cluster.startAgent(node, { args: [...modes[mode], '-v=4'] });
  await waitForAgents(cluster.lab, [agent], signal);
  for (const family of ipFamilies) {
    await until(async () => (await ask(family)) === 'one');
    await until(async () => (await askForeign(family, 53)) === 'foreign');
  }
}

function sliceTo(family: IpFamily, endpoints: readonly ('one' | 'two')[]): EndpointSlice {
  const labels = { 'kubernetes.io/service-name': 'dns' };
  return {
    metadata: { name: `dns-${family.toLowerCase()}`, namespace: 'default', labels },
    addressType: family,
    ports: [{ name: 'dns', protocol: 'UDP', port: 5353 }],
    endpoints: endpoints.map((name) => ({ addresses: [pods[name].addresses[family] ?? ''], nodeName: node.nodeName })),
  };
}

function sliceOfGone(family: IpFamily) {
  const labels = { 'kubernetes.io/service-name': 'gone' };
  const metadata = { name: `gone-${family.toLowerCase()}`, namespace: 'default', labels };
  return { ...sliceTo(family, ['one']), metadata, ports: [{ name: 'gone', protocol: 'UDP' as const, port: 5353 }] };
}

async function leadTo(family: IpFamily, ...endpoints: readonly ('one' | 'two')[]): Promise<void> {
  const slice = sliceTo(family, endpoints);
  const patch = { kind: 'merge', body: { endpoints: slice.endpoints } } as const;
  await cluster.api.patch(apiResources.endpointSlices, { name: slice.metadata.name ?? '' }, patch, signal);
}

type Place = readonly [prober: Prober, address: string | undefined, port: number, sourcePort: number];

/** Who answers, or how it went. */
async function exchange([prober, address = '', port, sourcePort]: Place): Promise<string> {
  const result = await prober.probe({ protocol: 'udp', address, port, sourcePort, timeout: 300 });
  return result.status === 'answered' ? (result.by ?? '') : result.status;
}

const ask = (family: IpFamily): Promise<string> => exchange([inside, clusterIps[family], 53, 40_001]);
const askOutside = (family: IpFamily): Promise<string> => exchange([outside, node.addresses[family], nodePort, 40_002]);
const askForeign = (family: IpFamily, port: number): Promise<string> =>
  exchange([inside, pods.foreign.addresses[family], port, 40_003]);

async function flowsTo(family: IpFamily, address: string | undefined): Promise<readonly TrackedFlow[]> {
  const found: TrackedFlow[] = [];
  const isWanted: (flow: { readonly destination: string }) => boolean = ({ destination }) => destination === address;
  for await (const part of flows.list({ ipFamily: family, isWanted }, signal)) found.push(...part);
  return found;
}

async function lines(message: string): Promise<readonly LogLine[]> {
  if (agent === undefined) throw new Error('no agent runs');
  return (await readLog(agent)).filter(({ msg }) => msg === message);
}

/** A sender in `host`, and its figures so far. */
async function startSender(host: LabHost, family: IpFamily, sourcePort: number) {
  const place = [clusterIps[family] ?? '', '53', String(sourcePort)];
  const running = host.spawn(process.execPath, [sender, ...place], { ipc: true, logName: 'udp-sender' });
  await once(running.child, 'message');
  const ask = async (message: 'figures' | 'stop'): Promise<SenderFigures> => {
    const answer = once(running.child, 'message');
    running.child.send(message);
    return ((await answer) as [SenderFigures])[0];
  };
  return {
    figures: () => ask('figures'),
    /** Ends the sending; what is still on its way is in later figures. */
    stop: () => ask('stop'),
    [Symbol.asyncDispose]: () => running.stop(millis(0)),
  };
}

type Load = Awaited<ReturnType<typeof startSender>>;

/** The figures when so many more have been sent. */
async function sentMore(load: Load, more: number): Promise<SenderFigures> {
  let figures = await load.figures();
  const enough = figures.sent + more;
  await until(async () => (figures = await load.figures()).sent >= enough);
  return figures;
}

/** The figures when no more answers come. */
async function sentAll(load: Load): Promise<SenderFigures> {
  let figures = await load.stop();
  let before: string;
  do {
    before = JSON.stringify(figures);
    await systemClock.sleep(millis(200), signal);
    figures = await load.figures();
  } while (JSON.stringify(figures) !== before);
  return figures;
}

const askedPods = ['asker', 'one', 'two'] as const;

/**
 * Datagrams that were lost for a reason that is not the agent's: a socket's queue was full, or the answer of the old endpoint came
 * when its flow had been removed and thus untranslated, which the asker's kernel has no socket for. A busy machine has
 * more of both: an endpoint that is not scheduled has a queue of questions when it is replaced.
 */
async function explainedLosses(family: IpFamily): Promise<number> {
  const counter = family === 'IPv4' ? udpCounter : udp6Counter;
  const texts = await Promise.all(
    askedPods.map(async (name) => (await pods[name].run('cat', ['/proc/net/snmp', '/proc/net/snmp6'])).stdout),
  );
  const full = texts.map((text) => counter(text, 'RcvbufErrors'));
  return full.reduce((sum, one) => sum + one, counter(texts[0] ?? '', 'NoPorts'));
}

function udpCounter(text: string, name: string): number {
  const [names = [], values = []] = text
    .split('\n')
    .filter((line) => line.startsWith('Udp: '))
    .map((line) => line.split(' '));
  return Number(values[names.indexOf(name)]);
}

function udp6Counter(text: string, name: string): number {
  return Number(new RegExp(`^Udp6${name}\\s+(\\d+)$`, 'm').exec(text)?.[1]);
}

/** Log lines of one family. */
async function linesOf(message: string, family: IpFamily): Promise<readonly LogLine[]> {
  return (await lines(message)).filter(({ ipFamily }) => ipFamily === family);
}

describe.each(Object.keys(modes) as (keyof typeof modes)[])('in %s mode', (mode) => {
  beforeAll(() => runAgent(mode));

  describe.each(ipFamilies)('UDP flows of %s', (family) => {
    test('a client that goes on from the same port reaches the new endpoint, also by NodePort', async () => {
      expect([await ask(family), await askOutside(family)]).toEqual(['one', 'one']);
      await leadTo(family, 'two');
      await until(async () => (await ask(family)) === 'two' && (await askOutside(family)) === 'two');
      await leadTo(family, 'one');
      await until(async () => (await ask(family)) === 'one' && (await askOutside(family)) === 'one');
    });

    test('a client whose last endpoint has gone is refused, and is served again by the next one', async () => {
      expect([await ask(family), await askOutside(family)]).toEqual(['one', 'one']);
      await leadTo(family);
      await until(async () => (await ask(family)) === 'refused' && (await askOutside(family)) === 'refused');
      expect(await flowsTo(family, clusterIps[family])).toEqual([]);
      expect(await flowsTo(family, node.addresses[family])).toEqual([]);
      await leadTo(family, 'two');
      await until(async () => (await ask(family)) === 'two' && (await askOutside(family)) === 'two');
      await leadTo(family, 'one');
      await until(async () => (await ask(family)) === 'one' && (await askOutside(family)) === 'one');
    });

    test('a flow through the node to the same port numbers of another program stays unchanged', async () => {
      expect(await askForeign(family, 53)).toBe('foreign');
      expect(await askForeign(family, nodePort)).toBe('foreign');
      const ids = async (): Promise<readonly number[]> =>
        (await flowsTo(family, pods.foreign.addresses[family])).map(({ id }) => id).sort();
      const before = await ids();
      expect(before).toHaveLength(2);
      await ask(family);
      await leadTo(family, 'two');
      await until(async () => (await ask(family)) === 'two');
      expect(await ids()).toEqual(before);
      await leadTo(family, 'one');
      await until(async () => (await ask(family)) === 'one');
    });

    test('a flow to an endpoint that still serves stays, to the very entry', async () => {
      await ask(family);
      const [before] = await flowsTo(family, clusterIps[family]);
      const looks = (await lines('applied')).length;
      await leadTo(family, 'one', 'two');
      await until(async () => (await lines('applied')).length > looks);
      await leadTo(family, 'one');
      await until(async () => (await lines('applied')).length > looks + 1);
      await systemClock.sleep(millis(300), signal);
      const after = (await flowsTo(family, clusterIps[family])).filter(({ sourcePort }) => sourcePort === 40_001);
      expect(after.map(({ id }) => id)).toEqual([before?.id]);
      expect(await ask(family)).toBe('one');
    });

    test('removals are logged with their number, and the flows at debug', async () => {
      const removed = (await lines('stale flows removed')).filter(({ ipFamily }) => ipFamily === family);
      expect(removed.length).toBeGreaterThan(0);
      expect(removed[0]).toMatchObject({ level: 'info', count: expect.any(Number) as number });
      const details = (await lines('removed flows')).filter(({ ipFamily }) => ipFamily === family);
      expect(JSON.stringify(details)).toContain('40001 -> ');
    });
  });

  describe('frontends that go lose their flows: no datagram reaches the endpoint any more', () => {
    const service = { metadata: { name: 'gone', namespace: 'default' } };
    const { services, endpointSlices } = apiResources;
    const other = { name: 'other', protocol: 'UDP' as const, port: 55 };
    test.each([
      ['a deleted Service', () => cluster.api.delete(services, service.metadata, {}, signal)],
      [
        'a removed port',
        () =>
          cluster.api.patch(services, service.metadata, { kind: 'merge', body: { spec: { ports: [other] } } }, signal),
      ],
    ])('%s', async (_, remove) => {
      const ports = [{ name: 'gone', protocol: 'UDP' as const, port: 54 }, other];
      const spec = { ports, type: 'NodePort' as const, ipFamilyPolicy: 'RequireDualStack' as const };
      const created = await cluster.api.create(services, { ...service, spec }, signal);
      for (const family of ipFamilies) await cluster.api.create(endpointSlices, sliceOfGone(family), signal);
      const nodePort = created.spec?.ports?.[0]?.nodePort ?? 0;
      const places = ipFamilies.flatMap((family): readonly Place[] => [
        [inside, created.spec?.clusterIPs?.find((ip) => ip.includes(':') === (family === 'IPv6')), 54, 40_004],
        [outside, node.addresses[family], nodePort, 40_004],
      ]);
      const flowsOf = async ([, address, port]: Place): Promise<readonly TrackedFlow[]> =>
        (await Promise.all(ipFamilies.map((family) => flowsTo(family, address))))
          .flat()
          .filter(({ sourcePort, destinationPort }) => sourcePort === 40_004 && destinationPort === port);
      for (const place of places) {
        await until(async () => (await exchange(place)) === 'one');
        expect(await flowsOf(place)).toHaveLength(1);
      }
      await remove();
      for (const place of places) {
        await until(async () => (await flowsOf(place)).length === 0);
        expect(await exchange(place)).not.toBe('one');
        flows.delete(await flowsOf(place)); // untranslated flows would disturb the next tests
      }
      for (const family of ipFamilies)
        await cluster.api.delete(endpointSlices, { name: sliceOfGone(family).metadata.name }, {}, signal);
      await cluster.api.delete(services, service.metadata, {}, signal).catch(() => undefined); // may be gone already
    });
  });

  describe('a client that sends every millisecond from one port', () => {
    test.each(ipFamilies)('%s: moves to the new endpoint at once', async (family) => {
      await leadTo(family, 'one');
      await until(async () => (await ask(family)) === 'one');
      const lostBefore = await explainedLosses(family);
      await using load = await startSender(pods.asker, family, 41_001);
      await until(async () => ((await load.figures()).answers['one'] ?? 0) > 100);
      const [applied, removed] = [await linesOf('applied', family), await linesOf('stale flows removed', family)];
      await leadTo(family, 'two');
      await until(async () => (await linesOf('stale flows removed', family)).length > removed.length);
      const appliedAt = (await linesOf('applied', family))[applied.length]?.time ?? Number.NaN;
      const removedAt = (await linesOf('stale flows removed', family))[removed.length]?.time ?? Number.NaN;
      expect(removedAt - appliedAt, 'by the first look; the second is a second later').toBeLessThan(1000);
      await until(async () => ((await load.figures()).answers['two'] ?? 0) > 0);
      const moved = await sentMore(load, 20);
      await sentMore(load, 500);
      const { sent, answers } = await sentAll(load);
      const { one = 0, two = 0 } = answers;
      expect(one - (moved.answers['one'] ?? 0), 'answers of the old endpoint after the move').toBe(0);
      expect(two).toBeGreaterThan(500);
      expect(sent - one - two - ((await explainedLosses(family)) - lostBefore)).toBeLessThan(10);
    });
  });
});

describe('a client that sends every millisecond from one port, in iptables mode without the native addon', () => {
  beforeAll(() => runAgent('iptables')); // removes the rules of the other mode, which this one cannot do without the addon

  test('stays with the old endpoint; the agent says so once and serves on', async () => {
    await agent?.stop();
    const lame = `${cluster.lab.folder}/without-addon`;
    await cp(bundle, lame, { recursive: true });
    await rm(`${lame}/switchyard_native.node`);
    const args = [
      `--kubeconfig=${cluster.insideKubeconfig}`,
      '--hostname-override=node1',
      '--proxy-mode=iptables',
      '--logging-format=json',
      '--conntrack-max-per-core=0', // it is the whole machine's
      '--oom-score-adj=0',
      '-v=4',
    ];
    agent = node.spawn(process.execPath, [`${lame}/main.mjs`, ...args]);
    await waitForAgents(cluster.lab, [agent], signal);
    await leadTo('IPv4', 'one');
    await until(async () => (await exchange([inside, clusterIps.IPv4, 53, 0])) === 'one');
    await using load = await startSender(pods.asker, 'IPv4', 41_002);
    await until(async () => ((await load.figures()).answers['one'] ?? 0) > 100);
    await leadTo('IPv4', 'two');
    await until(async () => (await exchange([inside, clusterIps.IPv4, 53, 0])) === 'two'); // new flows do follow
    await sentMore(load, 500);
    const { answers } = await sentAll(load);
    expect(answers['one']).toBeGreaterThan(500);
    expect(answers['two']).toBeUndefined();
    const warnings = (await readLog(agent)).filter(({ level }) => level === 'warn');
    const told = warnings.filter(
      ({ msg, ipFamily }) => msg === 'stale flows not removed, will retry' && ipFamily === 'IPv4',
    );
    expect(told).toHaveLength(1);
    expect(JSON.stringify(told)).toContain('switchyard_native.node is missing: build it with ./dev build');
    expect(warnings.filter(({ msg }) => msg === 'address changes are detected late')).toHaveLength(1);
  });
});
