import { createLab, type Lab, type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPacketCounters, type PacketCounters } from '../../src/index.ts';

const { signal } = new AbortController();
let lab: Lab;
let node: LabNode;
let counters: PacketCounters;

beforeAll(async () => {
  lab = await createLab({ name: 'nfacct', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  [node] = lab.nodes as [LabNode];
  counters = createPacketCounters({ netns: `/run/netns/${node.namespace}` });
});
afterAll(() => lab[Symbol.asyncDispose]());

async function run(line: string, stdin = ''): Promise<void> {
  const [file = '', ...args] = line.split(' ');
  const { exitCode, stderr } = await node.run(file, args, { stdin });
  if (exitCode !== 0) throw new Error(`${line}: ${stderr}`);
}

async function send(text: string): Promise<void> {
  const script = `const s = require('dgram').createSocket('udp4'); s.send('${text}', 9, '127.0.0.9', () => s.close())`;
  expect(await node.run(process.execPath, ['-e', script])).toMatchObject({ exitCode: 0 });
}

test('a rule of either variant of iptables counts in a counter that we made', async () => {
  expect(counters.read()).toEqual(new Map());
  counters.ensure('counted');
  counters.ensure('another');
  expect(counters.read().get('counted')).toEqual({ packets: 0, bytes: 0 });
  for (const [variant, packets] of [
    ['nft', 1],
    ['legacy', 3], // by the rules of both
  ] as const) {
    const rules = '*filter\n-A OUTPUT -d 127.0.0.9 -m nfacct --nfacct-name counted\nCOMMIT\n';
    await run(`iptables-${variant}-restore --noflush -w 5`, rules);
    await send('hello');
    expect(counters.read().get('counted')).toEqual({ packets, bytes: packets * (28 + 5) });
  }
  counters.ensure('counted');
  expect(counters.read().get('counted')?.packets).toBe(3);
  expect([...counters.read().keys()].sort()).toEqual(['another', 'counted']);
});

test('the counters of one namespace are not those of another', () => {
  expect(createPacketCounters().read().has('counted')).toBe(false);
});
