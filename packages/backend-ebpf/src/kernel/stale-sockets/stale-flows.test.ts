import { parseIp } from '@switchyard/core';
import { MemoryBpfMap } from '@switchyard/native/testing';
import { expect, test } from 'vitest';
import { flowKinds, mapShapes, offsetOf, sizeOf, smallestSizes } from '../../render/layouts.ts';
import { addressBytes } from '../../render/settings/address-bytes.ts';
import { addStaleFlows, type GoneEndpoint, type StaleFlows } from './stale-sockets.ts';

interface Flow {
  readonly socket?: bigint;
  readonly port?: number;
  readonly protocol?: number;
  readonly kind?: number;
  readonly endpoint?: number;
  readonly generation?: number;
}

/** A flow as programs write it, of socket 9 to 10.244.1.2:53, endpoint 4 generation 2, unless said otherwise. */
function flowsWith(...flows: readonly Flow[]): MemoryBpfMap {
  const map = new MemoryBpfMap(mapShapes(smallestSizes).flows);
  for (const {
    socket = 9n,
    port = 53,
    protocol = 17,
    kind = flowKinds.reverse,
    endpoint = 4,
    generation = 2,
  } of flows) {
    const key = new Uint8Array(sizeOf('flow_key'));
    const keyView = new DataView(key.buffer);
    keyView.setBigUint64(offsetOf('flow_key', 'socket'), socket, true);
    key.set(addressBytes(parseIp('10.244.1.2')), offsetOf('flow_key', 'address'));
    keyView.setUint16(offsetOf('flow_key', 'port'), port);
    key[offsetOf('flow_key', 'protocol')] = protocol;
    key[offsetOf('flow_key', 'kind')] = kind;
    const value = new Uint8Array(sizeOf('flow_value'));
    const valueView = new DataView(value.buffer);
    valueView.setUint32(offsetOf('flow_value', 'endpoint'), endpoint, true);
    valueView.setUint32(offsetOf('flow_value', 'generation'), generation, true);
    map.update(key, value);
  }
  return map;
}

function staleFlowsOf(map: MemoryBpfMap, endpoints: readonly GoneEndpoint[]): StaleFlows {
  const found: StaleFlows = new Map();
  const generationById = new Map(endpoints.map(({ id, generation }) => [id, generation]));
  for (const slice of map.slices()) addStaleFlows(found, slice, generationById);
  return found;
}

const gone = [{ id: 4, generation: 2 }];
const address = addressBytes(parseIp('10.244.1.2'));

test.each<[string, Flow, boolean]>([
  ['a connected UDP socket led there', {}, true],
  ['another endpoint', { endpoint: 5 }, false],
  ['the endpoint that has the id now', { generation: 3 }, false],
  ['TCP, which finds out by itself', { protocol: 6 }, false],
  ['what keeps an unconnected socket with its endpoint', { kind: flowKinds.sticky }, false],
])('%s', (_, flow, isFound) => {
  expect([...staleFlowsOf(flowsWith(flow), gone).keys()]).toEqual(isFound ? [9n] : []);
});

test('a socket that was led to several is known with all of them', () => {
  const flows = flowsWith({}, { port: 54, endpoint: 6 }, { socket: 10n });
  const found = staleFlowsOf(flows, [...gone, { id: 6, generation: 2 }]);
  expect(found).toEqual(
    new Map([
      [
        9n,
        [
          { address, port: 53 },
          { address, port: 54 },
        ],
      ],
      [10n, [{ address, port: 53 }]],
    ]),
  );
});
