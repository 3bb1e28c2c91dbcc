import {
  type Clock,
  type IpFamily,
  parseIp,
  parsePort,
  servicePortKey,
  serviceKey,
  systemClock,
} from '@switchyard/core';
import type { FlowTable, TrackedFlow } from '@switchyard/netfilter';
import { expect, test } from 'vitest';
import { exampleSpec, nodeTargets, portSpec } from '../testing/example-specs.ts';
import { proxiedTable } from './proxied-table.ts';
import { removeStaleFlows } from './stale-flows.ts';

const { signal } = new AbortController();
const dns = exampleSpec('dns', { ports: [portSpec(53, nodeTargets(30053), 'UDP')] });
const isUp = (_: unknown, { name }: { readonly name: string }): boolean => name === 'node1';
const table = proxiedTable({ specs: [dns], health: { isUp }, ownAddresses: [] }, 'IPv4');
const key = servicePortKey(serviceKey('kind.default', 'dns.53-udp'), '', 'UDP');

/** A flow to port 53 of an address, answered by another. */
function flow(destination: string, answeredBy: string): TrackedFlow {
  return {
    ipFamily: 'IPv4' as IpFamily,
    id: 1,
    zone: 0,
    handle: new Uint8Array(),
    source: parseIp('172.18.0.100'),
    sourcePort: parsePort(40000),
    destination: parseIp(destination),
    destinationPort: parsePort(53),
    replySource: parseIp(answeredBy),
    replySourcePort: parsePort(answeredBy === destination ? 53 : 30053),
  };
}

/** The connection tracking in memory; `late` flows enter it during a wait. */
function flowFixture(flows: readonly TrackedFlow[], late: readonly TrackedFlow[] = []) {
  let present = [...flows];
  const flowTable: FlowTable = {
    async *list({ isWanted = () => true }) {
      yield await Promise.resolve(present.filter(isWanted));
    },
    delete(gone) {
      present = present.filter((one) => !gone.includes(one));
      return gone.length;
    },
  };
  const sleep: Clock['sleep'] = () => {
    present.push(...late);
    return Promise.resolve();
  };
  return { with: { flows: flowTable, clock: { ...systemClock, sleep } }, left: () => present };
}

const [good, dead, untranslated, foreign] = [
  flow('172.18.255.1', '172.18.0.11'),
  flow('172.18.255.1', '172.18.0.12'),
  flow('172.18.255.1', '172.18.255.1'),
  flow('192.0.2.1', '172.18.0.12'),
] as const;

test('flows to a target that is DOWN go, and those from before there was a target', async () => {
  const { with: tools, left } = flowFixture([good, dead, untranslated, foreign]);
  expect(await removeStaleFlows({ table, except: undefined, hasChanged: false }, tools, signal)).toBe(2);
  expect(left()).toEqual([good, foreign]);
});

test('after a change, one that was on its way into the kernel goes too', async () => {
  const late = flowFixture([dead], [untranslated]);
  expect(await removeStaleFlows({ table, except: undefined, hasChanged: true }, late.with, signal)).toBe(2);
  expect(late.left()).toEqual([]);
});

test('flows of a port that the kernel refused are left alone', async () => {
  const { with: tools, left } = flowFixture([dead]);
  expect(await removeStaleFlows({ table, except: new Set([key]), hasChanged: true }, tools, signal)).toBe(0);
  expect(left()).toEqual([dead]);
});
