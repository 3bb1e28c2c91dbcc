import { describe, expect, test } from 'vitest';
import { parseContainers } from './container-inspect.ts';
import { parseEvent } from './engine-event.ts';
import { parseNetwork } from './network-inspect.ts';

const docker = {
  Name: 'kind',
  IPAM: {
    Config: [
      { Subnet: '172.18.0.0/16', Gateway: '172.18.0.1' },
      { Subnet: 'fc00:f853:ccd:e793::/64', Gateway: 'fc00:f853:ccd:e793::1' },
    ],
  },
  Containers: { c1f9: { Name: 'q1', IPv4Address: '172.18.0.2/16', IPv6Address: 'fc00:f853:ccd:e793::2/64' } },
};
const podman = {
  name: 'kind',
  driver: 'bridge',
  subnets: [
    { subnet: '10.89.0.0/24', gateway: '10.89.0.1' },
    { subnet: 'fda3:b4da:da1e:7e9d::/64', gateway: 'fda3:b4da:da1e:7e9d::1' },
  ],
  containers: {
    '7c0d': {
      name: 'c2',
      interfaces: {
        eth0: { subnets: [{ ipnet: '10.89.0.4/24' }, { ipnet: 'fda3:b4da:da1e:7e9d::4/64' }], mac_address: '1a:bd' },
      },
    },
  },
};

describe('network inspect', () => {
  test('of Docker', () => {
    expect(parseNetwork(JSON.stringify([docker]))).toEqual({
      name: 'kind',
      subnets: ['172.18.0.0/16', 'fc00:f853:ccd:e793::/64'],
      gateways: ['172.18.0.1', 'fc00:f853:ccd:e793::1'],
      containers: [{ id: 'c1f9', name: 'q1', addresses: ['172.18.0.2', 'fc00:f853:ccd:e793::2'] }],
    });
  });

  test('of Podman', () => {
    expect(parseNetwork(JSON.stringify([podman]))).toEqual({
      name: 'kind',
      subnets: ['10.89.0.0/24', 'fda3:b4da:da1e:7e9d::/64'],
      gateways: ['10.89.0.1', 'fda3:b4da:da1e:7e9d::1'],
      containers: [{ id: '7c0d', name: 'c2', addresses: ['10.89.0.4', 'fda3:b4da:da1e:7e9d::4'] }],
    });
  });

  test('of Podman before 5, and of nerdctl, which list no containers', () => {
    const { containers: _, ...old } = podman;
    expect(parseNetwork(JSON.stringify([old])).containers).toBeUndefined();
    const nerdctl = {
      Name: 'kind',
      Id: '1',
      IPAM: { Config: [{ Subnet: '10.4.1.0/24', Gateway: '10.4.1.1' }] },
      Labels: {},
    };
    expect(parseNetwork(JSON.stringify([nerdctl]))).toEqual({
      name: 'kind',
      subnets: ['10.4.1.0/24'],
      gateways: ['10.4.1.1'],
      containers: undefined,
    });
  });

  test.each([
    ['a network without a subnet', '[{"Name":"host","IPAM":{"Config":[]}}]', 'network host has no subnet'],
    ['what is no JSON', 'Emulate Docker CLI', "answered 'network inspect' with what is no JSON"],
  ])('%s is refused', (_, json, message) => {
    expect(() => parseNetwork(json)).toThrow(message);
  });
});

describe('container inspect', () => {
  const inspected = (changes: object): string =>
    JSON.stringify([
      { Id: 'c1f9', Name: '/lb', State: { Status: 'running' }, Config: { Labels: { a: 'b' } }, ...changes },
    ]);

  test('of Docker, with published ports', () => {
    const NetworkSettings = {
      Ports: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '32768' }], '443/tcp': null },
      Networks: { kind: { IPAddress: '172.18.0.5', GlobalIPv6Address: 'fc00::5' } },
    };
    expect(parseContainers(inspected({ NetworkSettings }))).toEqual([
      {
        id: 'c1f9',
        name: 'lb',
        state: 'running',
        labels: { a: 'b' },
        addresses: ['172.18.0.5', 'fc00::5'],
        networks: ['kind'],
        published: [{ port: '80/tcp', hostAddress: '127.0.0.1', hostPort: 32768 }],
      },
    ]);
  });

  test('one that does not run has no address', () => {
    const NetworkSettings = { Ports: {}, Networks: { kind: { IPAddress: '', GlobalIPv6Address: '' } } };
    const [container] = parseContainers(inspected({ NetworkSettings, State: { Status: 'created' } }));
    expect(container).toMatchObject({ state: 'created', addresses: [], published: [] });
  });

  test.each([
    ['restarting', 'restarting'],
    ['exited', 'stopped'],
    ['dead', 'gone'],
    ['removing', 'gone'],
    ['paused', 'paused'],
    ['configured', 'created'], // Podman
    ['initialized', 'created'],
    ['stopped', 'stopped'],
  ])('the state %s means %s', (Status, state) => {
    expect(parseContainers(inspected({ State: { Status } }))[0]?.state).toBe(state);
  });

  test('of nothing is nothing', () => {
    expect(parseContainers('[]\n')).toEqual([]);
    expect(parseContainers('')).toEqual([]);
  });
});

describe('a line of events', () => {
  const attributes = { 'dev.switchyard.lb.cluster': 'kind', image: 'x', name: 'lb1' };
  const wanted = { action: 'died', id: 'c1f9', name: 'lb1', labels: attributes };

  test.each([
    [
      'Docker',
      { status: 'die', id: 'c1f9', Type: 'container', Action: 'die', Actor: { ID: 'c1f9', Attributes: attributes } },
    ],
    ['Docker 29', { Type: 'container', Action: 'die', Actor: { ID: 'c1f9', Attributes: attributes }, timeNano: 1 }],
    [
      'Podman',
      {
        ID: 'c1f9',
        Image: 'x',
        Name: 'lb1',
        Status: 'died',
        Time: '2026-11-21T23:31:10Z',
        Type: 'container',
        Attributes: attributes,
      },
    ],
    [
      "Podman behind Docker's command line",
      { status: 'died', Type: 'container', Action: 'died', Actor: { ID: 'c1f9', Attributes: attributes } },
    ],
  ])('of %s', (_, event) => {
    expect(parseEvent(JSON.stringify(event))).toMatchObject(wanted);
  });

  test('of nerdctl has neither name nor labels', () => {
    const event = { Namespace: 'default', Topic: '/tasks/exit', Event: '{"container_id":"c1f9","id":"c1f9","pid":7}' };
    expect(parseEvent(JSON.stringify(event))).toEqual({ action: 'died', id: 'c1f9', name: '', labels: {} });
    const start = { ID: 'c1f9', Topic: '/tasks/start', Status: 'START', Event: '{"container_id":"c1f9","pid":7}' };
    expect(parseEvent(JSON.stringify(start))).toMatchObject({ action: 'started', id: 'c1f9' });
    const created = { Topic: '/containers/create', Event: '{"id":"c1f9","image":"x"}' };
    expect(parseEvent(JSON.stringify(created))).toMatchObject({ action: 'created', id: 'c1f9' });
  });

  test.each([
    [
      'a program started by nerdctl exec ends',
      '{"Topic":"/tasks/exit","Event":"{\\"container_id\\":\\"c\\",\\"id\\":\\"exec1\\"}"}',
    ],
    ['a program started by docker exec ends', '{"Type":"container","Action":"exec_die","Actor":{"ID":"c"}}'],
    ['a network is made', '{"Type":"network","Action":"create","Actor":{"ID":"n"}}'],
    ['the engine stops in the middle of a line', '{"Type":"container","Act'],
    ['a warning', 'WARNING: Error loading config file'],
  ])('is ignored: %s', (_, line) => {
    expect(parseEvent(line)).toBeUndefined();
  });
});
