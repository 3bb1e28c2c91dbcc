import { createLab, type Lab } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openNetlinkSocket } from '../../src/index.ts';

const { signal } = new AbortController();
const addressGroup = 5; // RTNLGRP_IPV4_IFADDR
let lab: Lab;

beforeAll(async () => {
  lab = await createLab({ name: 'native', nodes: 1, ipFamilies: ['IPv4'] }, signal);
});
afterAll(() => lab[Symbol.asyncDispose]());

test('notifications reach a socket in the namespace they belong to, and only there', async () => {
  const node = lab.nodes[0]!;
  const buffer = Buffer.alloc(65_536);
  using inside = openNetlinkSocket({
    protocol: 'route',
    netns: `/run/netns/${node.namespace}`,
    groups: [addressGroup],
  });
  using here = openNetlinkSocket({ protocol: 'route', groups: [addressGroup] });
  await node.run('ip', ['address', 'add', '192.0.2.77/32', 'dev', 'lo'], {});
  expect(inside.receive(buffer)).toBeGreaterThan(16);
  expect(inside.receive(buffer)).toBeUndefined();
  expect(here.receive(buffer)).toBeUndefined();
});
