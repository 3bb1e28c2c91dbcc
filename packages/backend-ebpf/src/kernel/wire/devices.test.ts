import { parseCidr, type PodDetector } from '@switchyard/core';
import type { Device, DeviceAddress } from '@switchyard/native';
import { describe, expect, test } from 'vitest';
import {
  anyDevice,
  bridgesForRules,
  chooseUplinks,
  masqueradeAddresses,
  type Network,
  type UplinkRule,
} from './devices.ts';

const device = (index: number, name: string, kind = '', more: Partial<Device> = {}): Device => ({
  index,
  name,
  kind,
  isLoopback: false,
  isUp: true,
  master: 0,
  hardwareAddress: `02000000000${index}`,
  ...more,
});

/** `10.0.0.1/24` on a device. */
function address(on: number, cidr: string, more: Partial<DeviceAddress> = {}): DeviceAddress {
  const [ip = '', length = ''] = cidr.split('/');
  const bytes = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...ip.split('.').map(Number));
  return {
    device: on,
    address: bytes,
    prefixLength: Number(length),
    isGlobal: true,
    isSecondary: false,
    isInUse: true,
    ...more,
  };
}

const podDetector = { kind: 'cidr', cidr: parseCidr('10.244.0.0/16') } as const;

const machine: Network = {
  devices: [
    device(1, 'lo', '', { isLoopback: true }),
    device(2, 'eth0'),
    device(3, 'eth1.100', 'vlan'),
    device(4, 'cni0', 'bridge'),
    device(5, 'docker0', 'bridge'),
    device(6, 'flannel.1', 'vxlan'),
    device(7, 'veth1a2b', 'veth'),
    device(8, 'cali1a2b', 'veth'),
    device(9, 'weave', 'openvswitch'),
    device(10, 'eth2'),
  ],
  addresses: [
    address(1, '127.0.0.1/8', { isGlobal: false }),
    address(2, '172.18.0.11/24'),
    address(3, '192.168.7.5/16'),
    address(4, '10.244.1.1/24'),
    address(5, '172.17.0.1/16'),
    address(6, '10.244.1.0/32'),
    address(7, '172.18.0.11/32'),
    address(9, '10.244.32.1/12'),
    address(10, '169.254.3.4/16', { isGlobal: false }),
  ],
  defaultDevice: 2,
};

/** Its port is what enters by `br1`. */
const withBridge: Partial<Network> = {
  devices: [...machine.devices, device(11, 'br1', 'bridge'), device(12, 'eth3', '', { master: 11 })],
};

describe('uplinks are', () => {
  const others = ['eth0', 'eth1.100', 'flannel.1', 'veth1a2b', 'cali1a2b', 'weave', 'eth2'];
  test.each<
    readonly [sentence: string, change: Partial<Network>, patterns: readonly string[], names: readonly string[]]
  >([
    ['all devices with or without an address, but for bridges', {}, [], others],
    ['found without a default route and without addresses', { defaultDevice: undefined, addresses: [] }, [], others],
    ['not ports of bridges', withBridge, [], others],
    [
      'a bridge that leads to the world',
      { defaultDevice: 5 },
      [],
      [...others.slice(0, 2), 'docker0', ...others.slice(2)],
    ],
    [
      'the port whose hardware address such a bridge has',
      {
        defaultDevice: 5,
        devices: [
          device(2, 'eth0'),
          device(5, 'docker0', 'bridge'),
          device(11, 'eth3', '', { master: 5, hardwareAddress: '020000000005' }),
          device(12, 'tap0', 'tun', { master: 5 }),
          device(13, 'eth4', '', { master: 4, hardwareAddress: '020000000005' }),
        ],
      },
      [],
      ['eth0', 'docker0', 'eth3'],
    ],
    [
      'not members of a bond, and devices of a routing domain',
      {
        devices: [
          device(2, 'eth0', '', { master: 3 }),
          device(3, 'bond0', 'bond'),
          device(4, 'eth1', '', { master: 5 }),
          device(5, 'blue', 'vrf'),
        ],
        defaultDevice: 3,
      },
      [],
      ['bond0', 'eth1', 'blue'],
    ],
    ['those that match a pattern, and no others', {}, ['eth1*', 'flannel.1'], ['eth1.100', 'flannel.1']],
    ['not those of which a pattern names a part', {}, ['th0', 'eth'], []],
    ['not those that a dot would match', {}, ['flannel?1', 'flannel-1'], []],
    ['never loopback', {}, ['*'], machine.devices.slice(1).map(({ name }) => name)],
  ])('%s', (_, change, patterns, names) => {
    const uplinks = chooseUplinks({ ...machine, ...change }, { patterns, podDetector });
    expect(uplinks.map(({ name }) => name)).toEqual(names);
  });

  test.each<readonly [string, PodDetector, readonly string[]]>([
    ['a name', { kind: 'interface', name: 'weave' }, others.filter((name) => name !== 'weave')],
    ['a prefix', { kind: 'interfacePrefix', prefix: 'cali' }, others.filter((name) => name !== 'cali1a2b')],
  ])('not the devices that detect pods by %s', (_, detector, names) => {
    const uplinks = chooseUplinks(machine, { patterns: [], podDetector: detector });
    expect(uplinks.map(({ name }) => name)).toEqual(names);
  });
});

describe('bridges for rules are', () => {
  const port = device(13, 'port', 'veth', { master: 4 });
  const withPods: Partial<Network> = { devices: [...machine.devices, port] };
  test.each<readonly [string, Partial<Network>, Partial<UplinkRule>, readonly string[]]>([
    ['those with ports', withBridge, {}, ['br1']],
    ['none without ports', {}, {}, []],
    ['none that leads to the world', { ...withBridge, defaultDevice: 11 }, {}, []],
    ['none where patterns name the devices', withBridge, { patterns: ['eth*'] }, []],
    ['not that of pods, by its address', withPods, {}, []],
    ['not that of pods, by its name', withPods, { podDetector: { kind: 'interface', name: 'cni0' } }, []],
    ['that of pods too, without a pod detector', withPods, { podDetector: { kind: 'none' } }, ['cni0']],
  ])('%s', (_, change, rule, names) => {
    const bridges = bridgesForRules({ ...machine, ...change }, { patterns: [], podDetector, ...rule });
    expect(bridges.map(({ name }) => name)).toEqual(names);
  });
});

describe('masquerade addresses', () => {
  const network: Network = {
    ...machine,
    addresses: [
      address(2, '172.18.0.99/24', { isSecondary: true }),
      address(2, '169.254.0.1/16', { isGlobal: false }),
      address(2, '172.18.0.11/24'),
      address(2, '172.18.0.12/24'),
      address(3, '192.168.7.5/16'),
    ],
  };
  const texts = (one: Network): Readonly<Record<string, string>> =>
    Object.fromEntries([...masqueradeAddresses(one)].map(([on, bytes]) => [on, bytes.subarray(12).join('.')]));

  test('are the first usable one of each device, and that of the default route for all others', () => {
    expect(texts(network)).toEqual({ 2: '172.18.0.11', 3: '192.168.7.5', [anyDevice]: '172.18.0.11' });
    expect(texts({ ...network, defaultDevice: 3 })).toMatchObject({ [anyDevice]: '192.168.7.5' });
  });

  test('fall back to the first of all where the default route has none', () => {
    expect(texts({ ...network, defaultDevice: 10 })).toMatchObject({ [anyDevice]: '172.18.0.11' });
    expect(texts({ ...network, addresses: [] })).toEqual({});
  });
});
