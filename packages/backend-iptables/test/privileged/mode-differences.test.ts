import { serviceChains } from '@switchyard/netfilter/iptables';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { DataplaneBackend } from '@switchyard/core/engine';
import type { ForwardingTable } from '@switchyard/core';
import { service, type ServiceSpec, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import { createSite, type Site, sitePort } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type IptablesHost, iptablesBackend } from '../../src/index.ts';
import { hostOf } from './site-host.ts';
import { signal, variant } from './support.ts';

// Differences of the iptables mode from the nftables mode that scenarios cannot express: docs/design/backends.md.

const clusterIp = '10.96.0.10';
const nodePort = 30_080;
const invalidSender = fileURLToPath(new URL('invalid-sender.pl', import.meta.url));

let site: Site;

beforeAll(async () => {
  site = await createSite(`iptd${variant.slice(0, 1)}`, signal);
});

afterAll(() => site[Symbol.asyncDispose]());

/** A Service on TCP with a NodePort, behind `near`. */
function table(spec: ServiceSpec = {}): ForwardingTable {
  const endpoints = [{ ip: site.near.addresses.IPv4 ?? '', node: 'n1' }];
  return tableOf(
    {
      services: [service('shop/cart', { clusterIps: [clusterIp], ports: [{ nodePort }], ...spec })],
      slices: [slice('shop/cart', { ports: [{ port: sitePort }], endpoints })],
    },
    tableOptions(),
  );
}

async function run(file: string, ...args: readonly string[]): Promise<string> {
  const result = await site.node.run(file, args);
  expect(result.exitCode, result.stderr).toBe(0);
  return result.stdout;
}

/** Works with a backend that has applied a table; nothing is left of it. */
async function withTable(
  given: ForwardingTable,
  work: () => Promise<void>,
  host?: Partial<IptablesHost>,
): Promise<void> {
  const backend: DataplaneBackend = await iptablesBackend.open({ ...hostOf(site), ...host }, 'IPv4', signal);
  try {
    expect(await backend.apply({ table: given, scope: { kind: 'full' } }, signal)).toMatchObject({ status: 'applied' });
    await work();
  } finally {
    await backend.cleanup(signal);
    await backend[Symbol.asyncDispose]();
  }
}

/** Packets that the rule for INVALID ones has dropped; undefined: there is no such rule. */
async function invalidDropped(): Promise<number | undefined> {
  const save = await run(`iptables-${variant}-save`, '-c', '-t', 'filter');
  const found = /^\[(\d+):\d+\] -A KUBE-FORWARD -m conntrack --ctstate INVALID .*-j DROP$/m.exec(save);
  return found === null ? undefined : Number(found[1]);
}

async function sendInvalid(): Promise<void> {
  const [source, destination] = [site.lab.client.addresses.IPv4 ?? '', site.near.addresses.IPv4 ?? ''];
  await site.lab.client.run('ip', ['route', 'replace', destination, 'via', site.node.addresses.IPv4 ?? '']);
  const result = await site.lab.client.run('perl', [invalidSender, source, destination, '5']);
  expect(result.exitCode, result.stderr).toBe(0);
}

test('packets that connection tracking calls INVALID are not forwarded', async () => {
  await withTable(table(), async () => {
    expect(await invalidDropped()).toBe(0);
    await sendInvalid();
    expect(await invalidDropped()).toBe(5);
  });
});

test('unless connection tracking is liberal: then they are', async () => {
  const work = async (): Promise<void> => expect(await invalidDropped()).toBeUndefined();
  await withTable(table(), work, { tcpBeLiberal: true });
});

test('an endpoint remembers as many clients as xt_recent is configured for: one more, and the oldest is forgotten', async () => {
  await withTable(table({ affinitySeconds: 600 }), async () => {
    const limit = Number(await readFile('/sys/module/xt_recent/parameters/ip_list_tot', 'utf8'));
    const clients = Array.from({ length: limit + 1 }, (_, index) => `172.18.0.${index + 120}`);
    const batch = clients.map((address) => `address add ${address}/24 dev eth0`).join('\n');
    const added = await site.lab.client.run('ip', ['-batch', '-'], { stdin: batch });
    expect(added.exitCode, added.stderr).toBe(0);
    for (const source of clients) {
      const request = { protocol: 'tcp', address: site.node.addresses.IPv4 ?? '', port: nodePort, source } as const;
      expect((await site.client.probe(request)).status).toBe('answered');
    }
    const chains = await run(
      `iptables-${variant}`,
      '-t',
      'nat',
      '-S',
      serviceChains('shop/cart:/TCP' as never, 'TCP').SVC,
    );
    const list = /-j (KUBE-SEP-\S+)/.exec(chains)?.[1] ?? '';
    const known = await run('cat', `/proc/net/xt_recent/${list}`);
    const remembered = [...known.matchAll(/^src=(\S+)/gm)].map((match) => match[1]);
    expect(remembered.sort()).toEqual(clients.slice(1).sort());
  });
});
