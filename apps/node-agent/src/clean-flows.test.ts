import {
  type ForwardingTable,
  HostError,
  InvariantError,
  type LogFields,
  noopLogger,
  noopMetrics,
  parseIp,
  parsePort,
} from '@switchyard/core';
import { type UdpFlow } from '@switchyard/core/engine';
import { ManualClock, service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import type { FlowQuery, FlowTable, TrackedFlow } from '@switchyard/netfilter';
import { describe, expect, test } from 'vitest';
import { flowCleaner } from './clean-flows.ts';

const { signal } = new AbortController();

/** `destination -> who answers`, both `IP:port`. */
function flowOf(text: string): TrackedFlow {
  const [[destination, destinationPort], [replySource, replySourcePort]] = text.split(' -> ').map((place) => {
    const [ip, port] = place.split(':');
    return [parseIp(ip!), parsePort(Number(port))] as const;
  }) as [readonly [UdpFlow['source'], UdpFlow['sourcePort']], readonly [UdpFlow['source'], UdpFlow['sourcePort']]];
  const from = { source: parseIp('203.0.113.9'), sourcePort: parsePort(40_000) };
  const kernel = { ipFamily: 'IPv4' as const, id: 1, zone: 0, handle: new Uint8Array(0) };
  return { ...from, destination, destinationPort, replySource, replySourcePort, ...kernel };
}

/** Flows in memory: one part of a listing per given list. */
class MemoryFlowTable implements FlowTable {
  readonly deleted: TrackedFlow[] = [];
  readonly parts: readonly (readonly string[])[];
  afterFirstPart: () => void = () => undefined;

  constructor(...parts: readonly (readonly string[])[]) {
    this.parts = parts;
  }

  async *list({ destinationPorts, isWanted }: FlowQuery): AsyncGenerator<readonly TrackedFlow[], void, undefined> {
    for (const [index, part] of this.parts.entries()) {
      if (index === 1) this.afterFirstPart();
      const flows = part.map(flowOf).filter((flow) => destinationPorts?.has(flow.destinationPort) !== false);
      yield flows.filter((flow) => isWanted?.(flow) !== false);
    }
  }

  delete(flows: readonly TrackedFlow[]): number {
    this.deleted.push(...flows);
    return flows.length;
  }

  get deletedTexts(): readonly string[] {
    return this.deleted.map((one) => `${one.destination}:${one.destinationPort} -> ${one.replySource}`);
  }
}

function dnsTable(...endpoints: readonly string[]): ForwardingTable {
  return tableOf(
    {
      services: [service('kube-system/dns', { ports: [{ protocol: 'UDP', port: 53, nodePort: 30053 }] })],
      slices: [slice('kube-system/dns', { ports: [{ protocol: 'UDP', port: 5353 }], endpoints })],
    },
    tableOptions({ nodePortCidrs: ['0.0.0.0/0'] }),
  );
}

function bench(openFlowTable: () => Promise<FlowTable>) {
  const logged: (LogFields & { readonly message: string })[] = [];
  const measured: unknown[] = [];
  const note = (message: string, fields?: LogFields): void => void logged.push({ message, ...fields });
  const clean = flowCleaner('IPv4', {
    clock: new ManualClock(),
    logger: { ...noopLogger, info: note, debug: note },
    metrics: { ...noopMetrics, add: (...given) => measured.push(given), observe: (name) => measured.push(name) },
    interfaceAddresses: () => [parseIp('192.0.2.1')],
    openFlowTable,
  });
  const state = { table: dnsTable('10.244.1.1') };
  return {
    logged,
    measured,
    state,
    clean: () => clean(() => ({ table: state.table, except: new Set(), former: [] }), signal),
  };
}

describe('flowCleaner', () => {
  test('removes what the newest table calls stale, logs and counts it', async () => {
    const flows = new MemoryFlowTable(
      ['10.96.0.10:53 -> 10.244.9.9:5353', '10.96.0.10:53 -> 10.244.1.1:5353', '192.0.2.1:30053 -> 10.244.9.8:5353'],
      ['192.0.2.99:30053 -> 192.0.2.99:30053', '10.96.0.10:54 -> 10.96.0.10:54'],
    );
    const { clean, logged, measured } = bench(async () => flows);
    await clean();
    expect(flows.deletedTexts).toEqual(['10.96.0.10:53 -> 10.244.9.9', '192.0.2.1:30053 -> 10.244.9.8']);
    expect(logged).toEqual([
      { message: 'stale flows removed', ipFamily: 'IPv4', count: 2 },
      {
        message: 'removed flows',
        ipFamily: 'IPv4',
        flows: [
          '203.0.113.9:40000 -> 10.96.0.10:53, answered by 10.244.9.9:5353',
          '203.0.113.9:40000 -> 192.0.2.1:30053, answered by 10.244.9.8:5353',
        ],
      },
    ]);
    expect(measured).toEqual([
      'kubeproxy_conntrack_reconciler_sync_duration_seconds',
      ['kubeproxy_conntrack_reconciler_deleted_entries_total', { ip_family: 'IPv4' }, 2],
    ]);
  });

  test('spares a flow to an endpoint that came while flows were listed', async () => {
    const flows = new MemoryFlowTable(['10.96.0.10:53 -> 10.244.9.9:5353'], ['10.96.0.10:53 -> 10.244.1.2:5353']);
    const { clean, state } = bench(async () => flows);
    flows.afterFirstPart = () => (state.table = dnsTable('10.244.1.1', '10.244.1.2'));
    await clean();
    expect(flows.deletedTexts).toEqual(['10.96.0.10:53 -> 10.244.9.9']);
  });

  test('says nothing when there is nothing to remove', async () => {
    const { clean, logged } = bench(async () => new MemoryFlowTable(['10.96.0.10:53 -> 10.244.1.1:5353']));
    await clean();
    expect(logged).toEqual([]);
  });

  test('does not touch the connection tracking on a node without UDP services', async () => {
    const { clean, state } = bench(() => Promise.reject(new InvariantError('unexpected')));
    state.table = tableOf({ services: [service('shop/web')] }, tableOptions());
    await expect(clean()).resolves.toBe(0);
  });

  test('reports what was removed before a failure', async () => {
    const flows = new MemoryFlowTable(['10.96.0.10:53 -> 10.244.9.9:5353'], []);
    flows.afterFirstPart = () => {
      throw new HostError('conntrack.interrupted', 'broken off');
    };
    const { clean, logged } = bench(async () => flows);
    await expect(clean()).rejects.toThrow('broken off');
    expect(logged[0]).toEqual({ message: 'stale flows removed', ipFamily: 'IPv4', count: 1 });
  });
});
