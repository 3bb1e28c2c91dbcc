import { parseIp } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { ContainerState, EngineContainer } from './container-inspect.ts';
import { kindClusters, serverUrl } from './kind-containers.ts';
import { withServer } from './kubeconfig-text.ts';

function node(name: string, role: string, state: ContainerState = 'running'): EngineContainer {
  const labels = { 'io.x-k8s.kind.cluster': name.split('-')[0] ?? '', 'io.x-k8s.kind.role': role };
  return { id: `id-${name}`, name, state, labels, addresses: [], networks: ['kind'], published: [] };
}

test('a label that is no name of a cluster names none', () => {
  const odd = ['', 'a b', 'a:b', '../a', '-a'].map((cluster) => {
    const one = node('a-control-plane', 'control-plane');
    return { ...one, labels: { ...one.labels, 'io.x-k8s.kind.cluster': cluster } };
  });
  expect(kindClusters([...odd, node('kind-worker', 'worker')]).map(({ cluster }) => cluster)).toEqual(['kind']);
});

describe('a kind cluster', () => {
  const balanced = [
    node('ha-control-plane2', 'control-plane'),
    node('ha-control-plane', 'control-plane', 'stopped'),
    node('ha-external-load-balancer', 'external-load-balancer'),
    node('ha-worker', 'worker'),
  ];

  test.each([
    [
      'its control plane',
      [node('a-worker', 'worker'), node('a-control-plane', 'control-plane')],
      'a-control-plane',
      'a-control-plane',
    ],
    ['its load balancer, where it has one', balanced, 'ha-control-plane2', 'ha-external-load-balancer'],
    [
      'nothing while that load balancer is down',
      [...balanced.slice(0, 2), node('ha-external-load-balancer', 'external-load-balancer', 'stopped')],
      'ha-control-plane2',
      undefined,
    ],
    ['nothing while it is stopped', [node('a-control-plane', 'control-plane', 'stopped')], undefined, undefined],
  ])('is reached by %s', (_, containers, asked, server) => {
    const [cluster] = kindClusters(containers);
    expect(cluster?.controlPlanes[0]?.name).toBe(asked);
    expect(cluster?.server?.name).toBe(server);
  });

  test('is one of several, by name', () => {
    const names = kindClusters([node('b-worker', 'worker'), node('a-control-plane', 'control-plane')]);
    expect(names.map(({ cluster }) => cluster)).toEqual(['a', 'b']);
  });
});

describe('the URL of an API server', () => {
  const published = (hostAddress: string): EngineContainer => ({
    ...node('a-control-plane', 'control-plane'),
    addresses: ['172.18.0.2', 'fc00::2'].map(parseIp),
    published: [{ port: '6443/tcp', hostAddress, hostPort: 41231 }],
  });

  test.each([
    ['127.0.0.1', 'https://127.0.0.1:41231'],
    ['0.0.0.0', 'https://127.0.0.1:41231'],
    ['::', 'https://[::1]:41231'],
    ['192.168.1.5', 'https://192.168.1.5:41231'],
  ])('published on %s is %s', (address, url) => {
    expect(serverUrl(published(address), false)).toBe(url);
  });

  test('from the network is the container’s, IPv4 if it has that', () => {
    expect(serverUrl(published('127.0.0.1'), true)).toBe('https://172.18.0.2:6443');
    const ipv6 = { ...published('127.0.0.1'), addresses: [parseIp('fc00::2')] };
    expect(serverUrl(ipv6, true)).toBe('https://[fc00::2]:6443');
  });

  test('is not known while nothing is published', () => {
    expect(serverUrl({ ...published(''), published: [] }, false)).toBeUndefined();
  });
});

describe('admin.conf with another server', () => {
  const conf = (server: string): string =>
    `clusters:\n- cluster:\n    certificate-authority-data: eA==\n    server: ${server}\n  name: a\n`;

  test('keeps the name that its certificate is checked for', () => {
    expect(withServer(conf('https://a-control-plane:6443'), 'https://127.0.0.1:41231')).toBe(
      'clusters:\n- cluster:\n    certificate-authority-data: eA==\n    server: https://127.0.0.1:41231\n    tls-server-name: a-control-plane\n  name: a\n',
    );
  });

  test('whose server was an address has no name to check', () => {
    expect(withServer(conf('https://172.18.0.2:6443'), 'https://127.0.0.1:1')).not.toContain('tls-server-name');
    expect(withServer(conf('https://[fc00::2]:6443'), 'https://127.0.0.1:1')).not.toContain('tls-server-name');
  });

  test.each([
    ['no server', 'apiVersion: v1\n'],
    ['two', conf('https://a:1') + conf('https://b:1')],
  ])('is refused with %s', (_, text) => {
    expect(() => withServer(text, 'https://127.0.0.1:1')).toThrow('instead of one');
  });
});
