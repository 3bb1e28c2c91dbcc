import { describe, expect, test } from 'vitest';
import { decode } from './schema.ts';
import { endpointSlices } from './resources/endpoint-slices.ts';
import { pods } from './resources/pods.ts';
import { services } from './resources/services.ts';

describe('decoding', () => {
  test('drops nulls, empty lists, empty maps and zeros that count as absent', () => {
    const body = {
      metadata: { name: 'a', labels: {}, creationTimestamp: null },
      spec: { clusterIP: '', ports: [], publishNotReadyAddresses: false },
    };
    expect(decode(services.schema, body).value).toEqual({ metadata: { name: 'a' }, spec: {} });
  });

  test('keeps zeros that say something', () => {
    const body = { metadata: { annotations: { a: '' } }, spec: { allocateLoadBalancerNodePorts: false } };
    expect(decode(services.schema, body).value).toEqual(body);
  });

  test('an EndpointSlice keeps explicit nulls for its lists', () => {
    const { value } = decode(endpointSlices.schema, { metadata: {}, addressType: 'IPv4', endpoints: [] });
    expect(value).toEqual({ metadata: {}, addressType: 'IPv4', endpoints: null, ports: null });
  });

  test('names unknown fields with their place', () => {
    const body = { spec: { prots: 1, ports: [{ port: 1 }, { prot: 2, port: 3 }] }, extra: {} };
    expect(decode(services.schema, body).unknownFields).toEqual(['spec.ports[1].prot', 'spec.prots', 'extra']);
  });

  test('keeps unknown fields where the type is open', () => {
    const body = { spec: { containers: [{ name: 'c', stdin: true }], runtimeClassName: 'x' } };
    expect(decode(pods.schema, body)).toEqual({ value: body, unknownFields: [], typeError: undefined });
  });

  test.each([
    [
      { spec: { ports: [{ port: 'x' }] } },
      'cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32',
    ],
    [
      { spec: { ports: 5 } },
      'cannot unmarshal number into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort',
    ],
    [
      { spec: { selector: { a: 1 } } },
      'cannot unmarshal number into Go struct field ServiceSpec.spec.selector of type string',
    ],
    [
      { spec: { publishNotReadyAddresses: 'yes' } },
      'cannot unmarshal string into Go struct field ServiceSpec.spec.publishNotReadyAddresses of type bool',
    ],
  ])('%j has a wrong type', (body, message) => {
    expect(decode(services.schema, body).typeError).toBe(`json: ${message}`);
  });
});
