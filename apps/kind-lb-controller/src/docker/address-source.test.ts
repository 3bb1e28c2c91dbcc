import { parseCidr } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type FakeAnswer, FakeEngine } from '../testing/fake-engine.ts';
import { readAddressSource } from './address-source.ts';
import { DockerCli } from './docker-cli.ts';

const { signal } = new AbortController();
const container = (id: string, address: string, labels = {}): object => ({
  Id: id,
  Name: id,
  State: { Status: 'running' },
  Config: { Labels: labels },
  NetworkSettings: { Networks: { kind: { IPAddress: address, GlobalIPv6Address: '' } } },
});
const labels = {
  'dev.switchyard.lb.cluster': 'other',
  'dev.switchyard.lb.service': 'a/b',
  'dev.switchyard.lb.addresses': '10.89.0.200',
};
const balancers: readonly FakeAnswer[] = [
  { when: 'ps * label=dev.switchyard.lb.cluster', stdout: 'lb\n' },
  { when: 'container inspect lb', stdout: JSON.stringify([container('lb', '10.89.0.5', labels)]) },
];

async function sourceOf(answers: readonly FakeAnswer[]): Promise<unknown> {
  using engine = new FakeEngine([...answers, ...balancers], 'podman');
  const cli = new DockerCli({ program: engine.program });
  return await readAddressSource({ cli, network: 'kind', pool: [] }, signal);
}

const old = '[{"name":"kind","subnets":[{"subnet":"10.89.0.0/24","gateway":"10.89.0.254"}]}]';

describe('the pool on a network', () => {
  test('reserves addresses of the gateway and of containers, and lists those of load balancers', async () => {
    const attached = [
      { when: 'network inspect kind', stdout: old },
      { when: 'ps * network=kind', stdout: 'node\n' },
      { when: 'container inspect node', stdout: JSON.stringify([container('node', '10.89.0.7')]) },
    ];
    const usual = ['10.89.0.254', '10.89.0.0', '10.89.0.1', '10.89.0.255', '10.89.0.7'];
    const cidrs = ['10.89.0.192/26'];
    const held = [{ id: { cluster: 'other', service: 'a/b' }, addresses: ['10.89.0.200'] }];
    expect(await sourceOf(attached)).toEqual({ kind: 'pool', cidrs, reserved: usual, held });
  });

  test('that is too small is an error that says what to do', async () => {
    const tiny = { when: 'network inspect kind', stdout: old.replace('/24', '/30') };
    await expect(sourceOf([tiny])).rejects.toThrow(
      'network kind (10.89.0.0/30) is too small for load balancers; name addresses with --pool',
    );
  });

  test('that is outside of the network is an error', async () => {
    using engine = new FakeEngine([{ when: 'network inspect kind', stdout: old }], 'podman');
    const cli = new DockerCli({ program: engine.program });
    const pool = [parseCidr('10.90.0.0/24')];
    const options = { cli, network: 'kind', pool };
    await expect(readAddressSource(options, signal)).rejects.toThrow('--pool: 10.90.0.0/24 is not inside network kind');
  });
});
