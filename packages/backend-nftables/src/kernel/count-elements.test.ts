import { ServiceCounts } from '@switchyard/core/engine';
import { type ServiceForwarding, type ServicePortKey } from '@switchyard/core';
import { situation } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { countElements } from './count-elements.ts';
import type { PlacedService } from '../render/place-service.ts';

const key = 'shop/cart:/TCP' as ServicePortKey; // as the table builder names it
const ports = [{ port: 80, nodePort: 30080 }];
const vip = 'frontends4 198.51.100.7 . tcp . 80';
const clusterIp = 'frontends4 10.96.0.10 . tcp . 80';
const nodePort = 'nodeports4 tcp . 30080';

function cart(id = 1, spec: { readonly loadBalancerIps?: readonly string[] } = {}): PlacedService {
  const { services } = situation({ cart: { ports, loadBalancerIps: ['198.51.100.7'], ...spec } });
  return { service: services.get(key) as ServiceForwarding, id, slots: undefined, affinity: undefined };
}

/** One reading: what the kernel says, and what was replaced since the last one. */
interface Step {
  readonly counted: Readonly<Record<string, number>>;
  readonly replaced?: readonly string[];
  /** Undefined: it could not be written yet. */
  readonly service?: PlacedService | undefined;
}

function readAll(steps: readonly Step[]): ServiceCounts['latest'] {
  const counts = new ServiceCounts();
  for (const { counted, replaced = [], ...step } of steps) {
    const service = 'service' in step ? step.service : cart();
    for (const id of replaced) counts.noteDeleted(id);
    counts.beginReading();
    countElements(counts, {
      services: service === undefined ? [] : [service],
      reading: new Map(Object.entries(counted)),
      suffix: '4',
      isKnown: () => true,
    });
  }
  return counts.latest;
}

const total = (steps: readonly Step[]): number | undefined => readAll(steps).get(key)?.connections;

describe('connections', () => {
  test.each<[string, readonly Step[], number]>([
    ['are none before any', [{ counted: {} }], 0],
    ['are those of all frontends', [{ counted: { [vip]: 3, [clusterIp]: 2, [nodePort]: 5 } }], 10],
    ['are those of this service', [{ counted: { [vip]: 3, 'frontends4 10.96.0.11 . tcp . 80': 9 } }], 3],
    ['are what the kernel says now', [{ counted: { [vip]: 3 } }, { counted: { [vip]: 7 } }], 7],
    ['go on when a frontend counts anew', [{ counted: { [vip]: 3 } }, { counted: { [vip]: 2 }, replaced: [vip] }], 5],
    [
      'go on when it has counted more than before by then',
      [{ counted: { [vip]: 3 } }, { counted: { [vip]: 4 }, replaced: [vip] }],
      7,
    ],
    [
      'go on when a reading lacks the element',
      [{ counted: { [vip]: 3 } }, { counted: {} }, { counted: { [vip]: 5 } }],
      5,
    ],
    ['go on when a restart of the counter went unnoticed', [{ counted: { [vip]: 3 } }, { counted: { [vip]: 2 } }], 5],
    [
      'are counted once, however often they are read',
      [{ counted: { [vip]: 3 } }, { counted: {}, replaced: [vip] }, { counted: {} }, { counted: { [vip]: 1 } }],
      4,
    ],
    [
      'of a removed frontend stay',
      [
        { counted: { [vip]: 3, [clusterIp]: 1 } },
        { counted: { [clusterIp]: 1 }, replaced: [vip], service: cart(1, { loadBalancerIps: [] }) },
      ],
      4,
    ],
    [
      'go on after a time in which the service could not be written',
      [{ counted: { [vip]: 3 } }, { counted: {}, replaced: [vip], service: undefined }, { counted: { [vip]: 1 } }],
      4,
    ],
  ])('%s', (_, steps, expected) => {
    expect(total(steps)).toBe(expected);
  });
});

test('drops are those of the service id, by reason', () => {
  const counted = {
    'drops-no-local4 0x1': 1,
    'drops-no-endpoints4 0x1': 2,
    'drops-source4 0x1': 3,
    'drops-source4 0x2': 9,
  };
  expect(readAll([{ counted }]).get(key)?.drops).toEqual({ noLocalEndpoint: 1, noEndpoints: 2, sourceRange: 3 });
});

test('drops go on when the service gets another id, as in a new table', () => {
  const steps = [
    { counted: { 'drops-no-local4 0x1': 4 } },
    { counted: { 'drops-no-local4 0x2': 1 }, service: cart(2) },
  ];
  expect(readAll(steps).get(key)?.drops.noLocalEndpoint).toBe(5);
});

test('a removed service is forgotten', () => {
  const counts = new ServiceCounts();
  const read = (services: readonly PlacedService[], connections: number) =>
    countElements(counts, { services, reading: new Map([[vip, connections]]), suffix: '4', isKnown: () => false });
  read([cart()], 3);
  expect(read([], 3).size).toBe(0);
  expect(read([cart()], 0).get(key)?.connections).toBe(0);
});
