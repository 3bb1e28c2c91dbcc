import { type ApiObject, apiResources } from '@switchyard/core/kubernetes';
import { createProber, type LabProcess, type ProbeResult, type Prober } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLoadBalancerLab, type LoadBalancerLab, localService, ports } from './load-balancer-lab.ts';
import { until } from '@switchyard/core/testing';

// Addresses from a pool, both families; the controller adds them to the load-balancer host's interface.
const { signal } = new AbortController();
const flags = [
  '--pool=172.18.0.200/29',
  '--pool=fd00:172:18:0:200::/80',
  '--interface=eth0',
  '--health-check-interval=500ms',
];
let lbLab: LoadBalancerLab;
let controller: LabProcess;
let prober: Prober;

const probe = (address: string): Promise<ProbeResult> =>
  prober.probe({ protocol: 'http', address, port: ports.port, timeout: 1000 });
const addressOf = (name: string): Promise<string> =>
  until(`the address of ${name}`, async () => {
    const { status } = await lbLab.api.get(apiResources.services, { name }, signal);
    return (status as { loadBalancer?: { ingress?: readonly { ip: string }[] } } | undefined)?.loadBalancer
      ?.ingress?.[0]?.ip;
  });
const hostAddresses = async (): Promise<string> =>
  (await lbLab.lab.loadBalancer.run('ip', ['-o', 'addr', 'show', 'dev', 'eth0'])).stdout;
const create = (name: string, changes: Readonly<Record<string, unknown>> = {}): Promise<ApiObject> =>
  lbLab.api.create(apiResources.services, localService(name, changes as never), signal);
/** A deleted Service stays until the controller has taken its finalizer off; until then its node port is taken. */
const gone = (name: string): Promise<true> =>
  until(`${name} to go`, async () => {
    const { items } = await lbLab.api.list(apiResources.services, {}, signal);
    return !items.some(({ metadata }) => metadata.name === name);
  });

beforeAll(async () => {
  lbLab = await createLoadBalancerLab('lbpool', signal);
  prober = await createProber(lbLab.lab.client, signal);
  controller = lbLab.startController(flags);
});
afterAll(async () => {
  await prober?.[Symbol.asyncDispose]();
  await lbLab?.[Symbol.asyncDispose]();
});

test('two Services with the same port get an address each, and both answer', async () => {
  await create('one');
  expect(await addressOf('one')).toBe('172.18.0.201');
  await create('two', { healthCheckNodePort: 32081, ports: [{ port: ports.port, nodePort: 30081 }] });
  expect(await addressOf('two')).toBe('172.18.0.202');
  expect(await probe('172.18.0.201')).toMatchObject({ status: 'answered', by: expect.stringMatching(/^node[12]$/) });
  expect(await hostAddresses()).toMatch(/172\.18\.0\.201\/32.*172\.18\.0\.202\/32/s);
});

test('addresses survive a restart of the controller, though an older Service could now have a lower one', async () => {
  await lbLab.api.delete(apiResources.services, { name: 'one' }, {}, signal);
  await gone('one');
  expect(await hostAddresses()).not.toContain('172.18.0.201/');
  await controller.stop();
  controller = lbLab.startController(flags);
  await create('three', { healthCheckNodePort: ports.healthCheckNodePort });
  expect(await addressOf('three')).toBe('172.18.0.201');
  expect(await addressOf('two')).toBe('172.18.0.202');
  await until('an answer', async () => (await probe('172.18.0.201')).status === 'answered');
});

describe('loadBalancerSourceRanges', () => {
  test('let only the listed sources in', async () => {
    const restrict = (ranges: readonly string[]): Promise<unknown> =>
      lbLab.api.patch(
        apiResources.services,
        { name: 'three' },
        { kind: 'merge', body: { spec: { loadBalancerSourceRanges: ranges } } },
        signal,
      );
    await restrict(['192.0.2.0/24']);
    await until('a refusal', async () => (await probe('172.18.0.201')).status !== 'answered');
    expect(['reset', 'empty']).toContain((await probe('172.18.0.201')).status);
    await restrict(['192.0.2.0/24', '172.18.0.100/32']);
    await until('an answer', async () => (await probe('172.18.0.201')).status === 'answered');
  });
});

test('an IPv6 Service gets an IPv6 address and is reached over IPv6 all the way', async () => {
  await lbLab.api.delete(apiResources.services, { name: 'three' }, {}, signal);
  await gone('three');
  await create('six', { ipFamilies: ['IPv6'] });
  expect(await addressOf('six')).toBe('fd00:172:18:0:200::1');
  const result = await until('an answer', async () => {
    const answer = await probe('fd00:172:18:0:200::1');
    return answer.status === 'answered' ? answer : undefined;
  });
  expect(result.seenSource).toBe('fd00:172:18::50'); // HAProxy's own address: it is a proxy
});

test('a second controller in the same namespace is refused', async () => {
  const second = lbLab.startController(flags);
  expect(await second.ended).toBe(1);
  const { stdout } = await lbLab.lab.loadBalancer.run('cat', [second.logFile]);
  expect(stdout).toMatch(/^switchyard-lb: another switchyard-lb runs with .*\n$/);
});
