import { parsePort } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { exampleSpec, nodeTargets, portSpec } from '../testing/example-specs.ts';
import { type ContainerPlan, containerVersion, publishablePorts, runArguments } from './container-arguments.ts';
import { addressesOf, containerName, idOf } from './container-names.ts';

const ports = [
  portSpec(53, nodeTargets(30053), 'UDP'),
  portSpec(80, nodeTargets(30080)),
  portSpec(99, nodeTargets(1), 'SCTP'),
];
const spec = exampleSpec('web', { ports });
const plan: ContainerPlan = {
  id: spec.id,
  network: 'kind',
  hasIpv6: true,
  interfaceSettings: 'sysctl',
  image: 'switchyard/load-balancer:1',
  imageId: 'sha256:1',
  addresses: spec.addresses,
  publishOn: '127.0.0.1',
  ports: publishablePorts(spec),
  isDiscovered: true,
};

test('the command that makes a container', () => {
  expect(runArguments(plan, new Set([parsePort(80)]))).toEqual([
    'run',
    '--detach',
    '--pull=never',
    '--name=switchyard-lb-kind-82b3ade9d00c',
    '--network=kind',
    '--restart=unless-stopped',
    '--stop-signal=SIGUSR1',
    '--stop-timeout=10',
    '--cap-drop=ALL',
    '--cap-add=NET_ADMIN',
    '--sysctl=net.ipv4.ip_unprivileged_port_start=0',
    '--sysctl=net.ipv4.ip_forward=1',
    '--sysctl=net.ipv4.conf.all.arp_notify=1',
    '--sysctl=net.ipv4.conf.all.send_redirects=0',
    '--sysctl=net.ipv6.conf.all.forwarding=1',
    '--sysctl=net.ipv6.conf.all.ndisc_notify=1',
    '--sysctl=net.ipv4.conf.eth0.send_redirects=0',
    '--label=dev.switchyard.lb.cluster=kind',
    '--label=dev.switchyard.lb.service=default/web',
    '--label=dev.switchyard.lb.addresses=172.18.255.1',
    `--label=dev.switchyard.lb.version=${containerVersion(plan)}`,
    '--label=dev.switchyard.lb.discovered=true',
    '--publish=127.0.0.1:53:53/udp',
    '--publish=127.0.0.1::80/tcp',
    'switchyard/load-balancer:1',
  ]);
});

test('a network without IPv6 gets no setting of it, and an IPv6 address to publish on its brackets', () => {
  const args = runArguments({ ...plan, hasIpv6: false, publishOn: '::1' }, new Set());
  expect(args.filter((arg) => arg.includes('ipv6'))).toEqual([]);
  expect(args).toContain('--publish=[::1]:80:80/tcp');
});

test('what is published: TCP and UDP, and nothing of the transparent path', () => {
  expect(publishablePorts(spec)).toEqual([
    { port: 53, protocol: 'udp' },
    { port: 80, protocol: 'tcp' },
  ]);
  expect(publishablePorts({ ...spec, path: 'transparent' })).toEqual([]);
});

describe("the interface's own setting", () => {
  const settings = (change: Partial<ContainerPlan>): readonly string[] =>
    runArguments({ ...plan, ...change }, new Set()).filter((one) => /eth0|IFNAME|--network/.test(one));

  test('comes with the network where the engine takes it in no other way', () => {
    const option = 'driver-opt=com.docker.network.endpoint.sysctls=net.ipv4.conf.IFNAME.send_redirects=0';
    expect(settings({ interfaceSettings: 'driverOption' })).toEqual([`--network=name=kind,${option}`]);
  });

  test.each(['Kind', 'a,b'])('is left out for network %s, whose name the long form would change', (network) => {
    expect(settings({ interfaceSettings: 'driverOption', network })).toEqual([`--network=${network}`]);
  });

  test('is left out where the interface is not there in time', () => {
    expect(settings({ interfaceSettings: 'none' })).toEqual(['--network=kind']);
  });
});

describe('a container is made anew', () => {
  const changes: readonly (readonly [string, Partial<ContainerPlan>])[] = [
    ['another image', { imageId: 'sha256:2' }],
    ['another network', { network: 'other' }],
    ['another address', { addresses: [] }],
    ['other published ports', { ports: [] }],
    ['ports that are published no more', { publishOn: undefined }],
    ['settings that it lacks', { hasIpv6: false }],
  ];
  test.each(changes)('for %s', (_, change) => {
    expect(containerVersion({ ...plan, ...change })).not.toBe(containerVersion(plan));
  });

  test('but not for another name of the same image, nor by a newer engine', () => {
    const same = { image: 'switchyard/load-balancer:latest', interfaceSettings: 'driverOption' } as const;
    expect(containerVersion({ ...plan, ...same })).toBe(containerVersion(plan));
  });
});

test('labels say whose container it is', () => {
  const labels = {
    'dev.switchyard.lb.cluster': 'kind',
    'dev.switchyard.lb.service': 'default/web',
    'dev.switchyard.lb.addresses': '172.18.255.1 fd00::1',
  };
  expect(idOf(labels)).toEqual(spec.id);
  expect(addressesOf(labels)).toEqual(['172.18.255.1', 'fd00::1']);
  expect(idOf({ ...labels, 'dev.switchyard.lb.service': 'nonsense' })).toBeUndefined();
  expect(containerName({ ...spec.id, cluster: 'other' })).not.toBe(containerName(spec.id));
});
