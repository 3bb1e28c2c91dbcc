import { expect, test } from 'vitest';
import { startHarness } from './harness.ts';

const v1 = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const beta = '/apis/discovery.k8s.io/v1beta1/namespaces/default/endpointslices';
const endpoint = { addresses: ['10.244.1.5'], conditions: { ready: true } };

test('a slice of v1 is a slice of v1beta1, whose endpoints have node and zone in their topology', async () => {
  await using api = await startHarness();
  const sent = { ...endpoint, nodeName: 'node1', zone: 'zone-a' };
  await api.send('POST', v1, { metadata: { name: 'cart-1' }, addressType: 'IPv4', endpoints: [sent], ports: [] });
  const { body } = await api.get(`${beta}/cart-1`);
  expect(body).toMatchObject({
    apiVersion: 'discovery.k8s.io/v1beta1',
    kind: 'EndpointSlice',
    endpoints: [
      {
        ...endpoint,
        nodeName: 'node1',
        topology: { 'kubernetes.io/hostname': 'node1', 'topology.kubernetes.io/zone': 'zone-a' },
      },
    ],
  });
  const list = await api.get(beta);
  expect(list.body).toMatchObject({ kind: 'EndpointSliceList', items: [{ metadata: { name: 'cart-1' } }] });
});

test('what is written as v1beta1 is read as v1', async () => {
  await using api = await startHarness();
  const topology = { 'kubernetes.io/hostname': 'node2', 'topology.kubernetes.io/zone': 'zone-b', rack: '7' };
  const sent = { metadata: { name: 'cart-1' }, addressType: 'IPv4', endpoints: [{ ...endpoint, topology }], ports: [] };
  expect((await api.send('POST', beta, sent)).status).toBe(201);
  const { body } = await api.get(`${v1}/cart-1`);
  expect(body).toMatchObject({
    apiVersion: 'discovery.k8s.io/v1',
    endpoints: [{ ...endpoint, nodeName: 'node2', zone: 'zone-b', deprecatedTopology: { rack: '7' } }],
  });
});

test('discovery names v1 only', async () => {
  await using api = await startHarness();
  const { body } = await api.get('/apis/discovery.k8s.io');
  expect(JSON.stringify(body)).not.toContain('v1beta1');
});
