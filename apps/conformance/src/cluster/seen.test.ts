import { parseIp, parsePort } from '@switchyard/core';
import type { ProbeResult } from '@switchyard/lab';
import type { ScenarioFlow } from '@switchyard/scenarios';
import { expect, test } from 'vitest';
import type { Seen } from '../model/test-environment.ts';
import { seenInCluster } from './echo-pool.ts';

const endpoint = parseIp('10.244.1.5');
const flow: ScenarioFlow = {
  from: 'pod',
  fromEndpoint: undefined,
  isFromItself: false,
  sourcePort: undefined,
  to: parseIp('10.96.0.10'),
  port: parsePort(80),
  protocol: 'TCP',
  expect: {
    kind: 'forward',
    to: [{ address: endpoint, port: undefined }],
    masquerade: true,
    isHairpinMasqueraded: true,
  },
  kept: undefined,
};
const answered = (by: string | undefined, seenSource: string): ProbeResult => ({
  status: 'answered',
  took: 1,
  httpStatus: undefined,
  headers: {},
  body: '{"destinationPort":8080}',
  by,
  node: 'n',
  seenSource,
  seenSourcePort: 1,
});
const [podSource, nodeSource, otherOfNode] = ['10.0.1.7', '192.0.2.1', '10.0.1.1'];
const seenEndpoint = (isMasqueraded: boolean): Seen => ({
  kind: 'endpoint',
  address: endpoint,
  port: 8080,
  isMasqueraded,
  isSender: false,
});

test.each<[string, ProbeResult, string, Seen]>([
  ['its own address was seen', answered('echo', podSource), podSource, seenEndpoint(false)],
  ["the node's address was seen", answered('echo', nodeSource), podSource, seenEndpoint(true)],
  [
    'another address of the node was seen, as behind an overlay',
    answered('echo', otherOfNode),
    podSource,
    seenEndpoint(true),
  ],
  [
    'the node sent, and another of its addresses was seen',
    answered('echo', otherOfNode),
    nodeSource,
    seenEndpoint(true),
  ],
  [
    'the node sent, and the same address was seen: as expected',
    answered('echo', nodeSource),
    nodeSource,
    seenEndpoint(true),
  ],
  [
    'another source was seen',
    answered('echo', '192.0.2.77'),
    podSource,
    { kind: 'other', text: '10.244.1.5 saw the source 192.0.2.77, not 10.0.1.7' },
  ],
  [
    'a pod answered that stands for no endpoint',
    answered('marker', podSource),
    podSource,
    { kind: 'other', text: 'answered by marker' },
  ],
  ['another program answered', answered(undefined, ''), podSource, { kind: 'other', text: 'answered by a stranger' }],
  ['it was refused', { status: 'refused', took: 1 }, podSource, { kind: 'refused' }],
  ["the sender's own kernel dropped it", { status: 'dropped', took: 1 }, podSource, { kind: 'timeout' }],
  [
    'there was no route',
    { status: 'unreachable', code: 'ENETUNREACH', took: 1 },
    podSource,
    { kind: 'other', text: 'unreachable (ENETUNREACH)' },
  ],
])('%s', (_, result, source, expected) => {
  const endpointOf = (pod: string): typeof endpoint | undefined => (pod === 'echo' ? endpoint : undefined);
  expect(seenInCluster(result, { flow, source, nodeAddresses: [nodeSource, otherOfNode], endpointOf })).toEqual(
    expected,
  );
});

test('masquerading of the node itself cannot be seen: it counts as expected either way', () => {
  const expect_ = { ...flow.expect, masquerade: false } as ScenarioFlow['expect'];
  const context = {
    flow: { ...flow, expect: expect_ },
    source: nodeSource,
    nodeAddresses: [nodeSource],
    endpointOf: () => endpoint,
  };
  expect(seenInCluster(answered('echo', nodeSource), context)).toEqual(seenEndpoint(false));
});
