import { type Cidr, millis, parseIp, type ServiceForwarding } from '@switchyard/core';
import { here, situation, type SituationOptions, type SituationSpec, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { guardKey, renderService } from './render-service.ts';

function forwardingOf(spec: SituationSpec, options: SituationOptions = {}): ServiceForwarding {
  const [service] = [...situation({ cart: { clusterIps: ['10.96.0.1'], ...spec } }, options).services.values()];
  return service!;
}

const bytes = (words: Uint32Array): string =>
  Buffer.from(words.buffer, words.byteOffset, words.byteLength).toString('hex');

/** Action of each class and flags, the lowest three bits first. */
const actionsOf = (spec: SituationSpec): readonly string[] =>
  renderService(forwardingOf(spec)).frontends.map(({ actions }) => `0b${actions.toString(2).padStart(11, '0')}`);

describe('a frontend', () => {
  test.each<[string, SituationSpec, SituationOptions, string]>([
    ['IPv4', {}, {}, '00000000000000000000ffff0a600001 0050 06 00 00000000'],
    [
      'IPv6, UDP',
      { clusterIps: ['fd00:10:96::a'], ports: [{ protocol: 'UDP', port: 53 }] },
      { ipFamily: 'IPv6' },
      'fd00001000960000000000000000000a 0035 11 00 00000000',
    ],
  ])('of %s has its address, its port in network order and its protocol as key', (_, spec, options, key) => {
    expect(renderService(forwardingOf(spec, options)).frontends.map((one) => bytes(one.key))).toEqual([
      key.replaceAll(' ', ''),
    ]);
  });

  test('NodePorts answer at no address of their own', () => {
    const { frontends } = renderService(
      forwardingOf({ ports: [{ nodePort: 30080 }], endpoints: [here('10.244.1.1')] }),
    );
    expect(frontends.map(({ key }) => bytes(key))[1]).toBe(`${'0'.repeat(32)}758006010${'0'.repeat(7)}`);
  });

  test.each<[string, SituationSpec, readonly string[]]>([
    // outside, node, pod: masquerade bit, then 1 the cluster set.
    ['a cluster IP with endpoints', { endpoints: [there('10.244.2.1')] }, ['0b00101101001']],
    ['a cluster IP without any', {}, ['0b00000000000']],
    ['internal policy Local, none here', { internal: 'Local', endpoints: [there('10.244.2.1')] }, ['0b00011011011']],
    [
      'external policy Local: pods and node use all, others those here',
      { external: 'Local', externalIps: ['198.51.100.1'], endpoints: [here('10.244.1.1')] },
      ['0b00101101001', '0b00010101001'],
    ],
    [
      'source ranges: the source is looked at, sockets leave it alone',
      { loadBalancerIps: ['198.51.100.1'], sourceRanges: ['10.0.0.0/8'], endpoints: [here('10.244.1.1')] },
      ['0b00101101001', '0b11101101101'],
    ],
  ])('%s', (_, spec, actions) => {
    expect(actionsOf(spec)).toEqual(actions);
  });
});

describe('a Service', () => {
  test('of SCTP is for nftables; its cluster IP is guarded too', () => {
    const service = forwardingOf({ ports: [{ protocol: 'SCTP', port: 80 }], endpoints: [here('10.244.1.1')] });
    expect(renderService(service)).toEqual({
      frontends: [],
      guards: ['10.96.0.1'],
      clusterSet: [],
      localSet: [],
      sourceRanges: [],
      affinitySeconds: 0,
    });
  });

  test.each([
    [0, 1],
    [1, 1],
    [1500, 2],
    [10_800_000, 10_800],
    [999_999_999_999, 86_400],
  ])('keeps clients for whole seconds, as kube-proxy allows: %i ms are %i s', (timeout, seconds) => {
    const service = { ...forwardingOf({}), sessionAffinity: { kind: 'clientIP', timeout: millis(timeout) } } as const;
    expect(renderService(service).affinitySeconds).toBe(seconds);
  });

  test('whose frontends have different source ranges cannot be written, and is named', () => {
    const service = forwardingOf({ loadBalancerIps: ['198.51.100.1', '198.51.100.2'], sourceRanges: ['10.0.0.0/8'] });
    const frontends = service.frontends.map((one) =>
      one.address === '198.51.100.2' ? { ...one, allowedSources: ['192.0.2.0/24' as Cidr] } : one,
    );
    expect(() => renderService({ ...service, frontends })).toThrow(
      'cannot write shop/cart:/TCP: its frontends have different source ranges',
    );
  });
});

test('a guard has neither port nor protocol', () => {
  expect(bytes(guardKey(parseIp('10.96.0.1')))).toBe(
    `00000000000000000000ffff0a600001${'0'.repeat(6)}02${'0'.repeat(8)}`,
  );
});
