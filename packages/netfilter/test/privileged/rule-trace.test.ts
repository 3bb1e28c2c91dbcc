import { setTimeout as sleep } from 'node:timers/promises';
import { ipFamilies, type IpFamily, parseIp, parsePort } from '@switchyard/core';
import {
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openRuleTrace } from '../../src/index.ts';

const { signal } = new AbortController();
let lab: Lab;
let node: LabNode;
let server: LabPod;
let clientPod: LabPod;
let client: Prober;
let netns: string;

beforeAll(async () => {
  lab = await createLab({ name: 'ntrace', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  server = await lab.addPod(node, 'server');
  netns = `/run/netns/${node.namespace}`;
  startEchoServer(server, { pod: 'server', tcp: [8080], udp: [8080] });
  clientPod = await lab.addPod(node, 'caller');
  client = await createProber(clientPod, signal);
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await node.run('nft', ['flush', 'ruleset']);
});

async function load(ruleset: string): Promise<void> {
  const { stderr } = await node.run('nft', ['-f', '-'], { stdin: ruleset });
  expect(stderr).toBe('');
}

function traffic(ipFamily: IpFamily, protocol: 'TCP' | 'UDP' = 'TCP') {
  const address = server.addresses[ipFamily] ?? '';
  const from = clientPod.addresses[ipFamily] ?? '';
  const send = () => client.probe({ protocol: protocol === 'TCP' ? 'tcp' : 'udp', address, port: 8080, timeout: 300 });
  const traced = {
    client: parseIp(from),
    servers: new Set([parseIp(address)]),
    ports: new Set([parsePort(8080)]),
    protocol,
  };
  return { send, traced };
}

const tables = async (): Promise<string> => (await node.run('nft', ['list', 'tables'])).stdout;

describe.each(ipFamilies)('%s', (ipFamily) => {
  const ip = ipFamily === 'IPv4' ? 'ip' : 'ip6';

  test.each([
    ['a chain at a hook', 'inet', 'type filter hook forward priority 0;', 'tcp dport 8080 drop;', 'c', 'TCP'],
    ['one after translation', ip, 'type filter hook postrouting priority 0;', 'tcp dport 8080 drop;', 'c', 'TCP'],
    ['an early hook', 'inet', 'type filter hook prerouting priority raw;', 'udp dport 8080 drop;', 'c', 'UDP'],
    ['the way back', 'inet', 'type filter hook forward priority 0;', 'tcp sport 8080 drop;', 'c', 'TCP'],
    ['a reject', 'inet', 'type filter hook forward priority 0;', 'tcp dport 8080 reject;', 'c', 'TCP'],
    ['a chain that another jumps to', 'inet', 'type filter hook forward priority 0;', 'jump inner;', 'inner', 'TCP'],
  ] as const)('names the rule of %s', async (_, family, hook, rule, chain, protocol) => {
    const inner = 'chain inner { ct state invalid counter; tcp dport 8080 drop; }';
    await load(`table ${family} other {\n ${inner}\n chain c { ${hook} ct state invalid counter; ${rule} }\n}`);
    const { send, traced } = traffic(ipFamily, protocol);
    using trace = openRuleTrace(traced, netns);
    await send();
    expect(trace.droppedBy()).toEqual({
      family,
      table: 'other',
      chain,
      rule: { handle: expect.any(BigInt) as bigint, position: 2 },
    });
  });

  test('names the chain whose policy it is', async () => {
    await load(`table inet other {\n chain c { type filter hook forward priority 0; policy drop; }\n}`);
    const { send, traced } = traffic(ipFamily);
    using trace = openRuleTrace(traced, netns);
    await send();
    expect(trace.droppedBy()).toEqual({ family: 'inet', table: 'other', chain: 'c' });
  });

  test('says nothing of answered packets, and of other servers’', async () => {
    await load(`table inet other {\n chain c { type filter hook forward priority 0; udp dport 8080 drop; }\n}`);
    const answered = traffic(ipFamily);
    using trace = openRuleTrace(answered.traced, netns);
    expect(await answered.send()).toMatchObject({ status: 'answered' });
    const dropped = traffic(ipFamily, 'UDP');
    const servers = new Set([parseIp(ipFamily === 'IPv4' ? '192.0.2.1' : 'fd00::9')]);
    using otherTrace = openRuleTrace({ ...dropped.traced, servers }, netns); // beside the first
    await dropped.send();
    expect(otherTrace.droppedBy()).toBeUndefined();
    expect(trace.droppedBy()).toBeUndefined();
  });
});

test('it leaves no table behind, and traces at most 20 packets each way', async () => {
  const { send, traced } = traffic('IPv4', 'UDP');
  {
    using trace = openRuleTrace(traced, netns);
    expect(await tables()).toContain('table ip switchyard-trace');
    for (let sent = 0; sent < 25; sent++) await send();
    await load(`table inet other {\n chain c { type filter hook forward priority 0; udp dport 8080 drop; }\n}`);
    await send();
    expect(trace.droppedBy()).toBeUndefined();
  }
  await sleep(100);
  expect(await tables()).not.toContain('switchyard-trace');
});
