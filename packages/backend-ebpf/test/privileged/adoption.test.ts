import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseIp } from '@switchyard/core';
import { addressNumber, here, there } from '@switchyard/core/testing';
import { connectWhile, createSite, type ProbeRequest, type Site } from '@switchyard/lab';
import { queryCgroup } from '@switchyard/native';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hooksOf } from '../../src/kernel/kernel.ts';
import type { HolderCommand, HolderOptions } from './backend-holder.ts';
import { Holder } from './holder.ts';

const signal = new AbortController().signal;
const clusterIp = '10.96.0.10';
const vip = '198.51.100.1';
let site: Site;
let otherBuild: string;

beforeAll(async () => {
  site = await createSite('ebpflife', signal);
  await site.lab.routeToNode([parseIp(vip)], site.node);
  otherBuild = join(site.lab.folder, 'socket.bpf.o');
  compileOtherBuild(otherBuild);
});
afterAll(() => site[Symbol.asyncDispose]());

type Services = Extract<HolderCommand, { services: unknown }>['services'];

/** The Service under load, and so many others. */
function services(others: number): Services {
  const endpoints = [here(site.near.addresses.IPv4 ?? ''), there(site.far.addresses.IPv4 ?? '')];
  const other = (_: unknown, index: number): [string, Services[string]] => [
    `other${index}`,
    { clusterIps: [addressNumber(10, 0x600100 + index)], endpoints: [there(addressNumber(11, index))] },
  ];
  return {
    shop: { loadBalancerIps: [vip], ports: [{ port: 80 }, { name: 'dns', port: 53, protocol: 'UDP' }], endpoints },
    ...Object.fromEntries(Array.from({ length: others }, other)),
  };
}

function place(northSouth: HolderOptions['northSouth']): HolderOptions {
  const { cgroupPath, bpffsPath } = site.node;
  if (cgroupPath === undefined || bpffsPath === undefined) throw new Error(site.lab.limitations.join(' '));
  return { ipFamily: 'IPv4', cgroup: cgroupPath, bpffs: bpffsPath, northSouth };
}

function programsAt(): Readonly<Record<string, number>> {
  const ids = hooksOf.IPv4.map((hook) => [hook, queryCgroup(place('tc').cgroup, hook)[0]?.id ?? 0] as const);
  return Object.fromEntries(ids);
}

describe.each<[HolderOptions['northSouth'], number]>([
  ['tc', 5000],
  ['nftables', 20],
])('with %s north-south, under connects', (northSouth, many) => {
  const inside: ProbeRequest = { protocol: 'tcp', address: clusterIp, port: 80 };
  const outside: ProbeRequest = { protocol: 'tcp', address: vip, port: 80 };
  const datagram: ProbeRequest = { protocol: 'udp', address: clusterIp, port: 53 };

  test('killed, adopted, upgraded, grown: none fails, and what is connected stays so', async () => {
    const { pod, self, client } = site;
    const options = place(northSouth);
    const first = await Holder.start(site.node, options);
    expect(await first.ask({ kind: 'full', services: services(10) })).toMatchObject({ status: 'applied' });
    const held = [await pod.open(inside), await client.open(outside)].map(({ connection }) => connection);
    const steps = async (): Promise<void> => {
      const before = programsAt();
      await first.kill();
      const second = await Holder.start(site.node, options);
      expect(await second.ask({ kind: 'full', services: services(10) })).toEqual({ status: 'applied', writes: 0 });
      expect(programsAt()).toEqual(before);
      expect(await second.ask({ kind: 'next', services: services(many) })).toMatchObject({ status: 'applied' });
      if (many > 4096) expect(programsAt()).not.toEqual(before); // others, over larger maps
      await second.kill();
      const third = await Holder.start(site.node, { ...options, object: otherBuild });
      expect(await third.ask({ kind: 'full', services: services(many) })).toEqual({ status: 'applied', writes: 8 });
      expect(await third.ask({ kind: 'next', services: services(0) })).toMatchObject({ status: 'applied' });
      await third.kill();
    };
    const lines = [
      { prober: pod, requests: [inside, datagram], lines: 1 },
      { prober: self, requests: [inside], lines: 1 },
      { prober: client, requests: [outside, { ...datagram, address: vip }], lines: 1 },
    ] as const;
    const done = Promise.withResolvers<undefined>();
    const traffic = lines.map((line) => connectWhile(line, () => done.promise.then(() => undefined)));
    await steps().finally(() => done.resolve(undefined));
    for (const { count, failed } of await Promise.all(traffic)) {
      expect(failed).toEqual([]);
      expect(count).toBeGreaterThan(50);
    }
    const exchanges = await Promise.all(held.map((connection) => connection?.exchange('still here')));
    expect(exchanges.map((one) => one?.status)).toEqual(['echoed', 'echoed']);
  });

  test('removal leaves nothing attached and nothing pinned', async () => {
    const options = place(northSouth);
    const cleaner = await Holder.start(site.node, options);
    expect(await cleaner.ask({ kind: 'cleanup' })).toEqual(expect.arrayContaining([expect.stringContaining('IPv4')]));
    expect(await cleaner.ask({ kind: 'cleanup' })).toEqual([]);
    await cleaner.kill();
    expect(Object.values(programsAt())).toEqual(hooksOf.IPv4.map(() => 0));
    expect(readdirSync(options.bpffs).filter((name) => !name.endsWith('.debug'))).toEqual([]);
    const tables = await site.node.run('nft', ['list', 'tables']);
    expect(tables.stdout).toBe('');
    expect((await site.pod.probe({ ...inside, timeout: 300 })).status).not.toBe('answered');
  });
});

/** The same programs, compiled for older kernels: other instructions that do the same. */
function compileOtherBuild(object: string): void {
  const folder = join(import.meta.dirname, '../..');
  const machine = execFileSync('cc', ['-print-multiarch'], { encoding: 'utf8' }).trim();
  const headers = [`-I${folder}/build`, `-I/usr/include/${machine}`];
  const flags = ['-O2', '-g', '-target', 'bpfel', '-mcpu=v2', ...headers];
  execFileSync('clang', [...flags, '-c', `${folder}/bpf/socket.bpf.c`, '-o', object]);
}
