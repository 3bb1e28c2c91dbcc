import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type IpFamily, ipFamilies, millis, parseIp, systemClock } from '@switchyard/core';
import {
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from './agent-log.ts';

const program = fileURLToPath(new URL('../../bin/switchyard-agent', import.meta.url));
const { signal } = new AbortController();
const ports = { service: 30_080, health: 30_081 };
/** Inside and outside the CIDRs that select NodePort addresses; none is there at the start. */
const later: Readonly<Record<IpFamily, { readonly inside: string; readonly outside: string }>> = {
  IPv4: { inside: '203.0.113.7', outside: '198.51.100.7' },
  IPv6: { inside: 'fd00:203::7', outside: 'fd00:198::7' },
};

let lab: Lab;
let node: LabNode;
let pod: LabPod;
let client: Prober;

beforeAll(async () => {
  lab = await createLab({ name: 'agaddr', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  pod = await lab.addPod(node, 'one');
  client = await createProber(lab.client, signal);
  startEchoServer(pod, { pod: 'one', http: [8080] });
  await lab.routeToNode(
    Object.values(later).flatMap((one) => Object.values(one).map(parseIp)),
    node,
  );
  const folder = `${lab.folder}/manifests`;
  await mkdir(folder);
  await writeFile(`${folder}/service.json`, JSON.stringify(service));
  for (const family of ipFamilies) await writeFile(`${folder}/${family}.json`, JSON.stringify(sliceOf(family)));
  node.spawn(program, [
    '--proxy-mode=nftables',
    '--logging-format=json',
    '--conntrack-max-per-core=0', // it is the whole machine's
    '--oom-score-adj=0',
    `--switchyard-manifests=${folder}`,
    '--hostname-override=node1',
    '--cluster-cidr=10.244.0.0/16,fd00:10:244::/48',
    '--nodeport-addresses=localhost,172.18.0.0/16,203.0.113.0/24,fd00:172:18::/64,fd00:203::/64',
  ]);
  for (const family of ipFamilies) {
    await until(async () => (await ask(node.addresses[family] ?? '', ports.service)) === 'answered');
  }
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'cart', namespace: 'shop' },
  spec: {
    type: 'LoadBalancer',
    clusterIP: '10.96.0.10',
    clusterIPs: ['10.96.0.10', 'fd00:10:96::10'],
    ipFamilies: ['IPv4', 'IPv6'],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: ports.health,
    ports: [{ name: 'http', port: 80, targetPort: 8080, nodePort: ports.service }],
  },
};

function sliceOf(family: IpFamily): object {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `cart-${family}`, namespace: 'shop', labels: { 'kubernetes.io/service-name': 'cart' } },
    addressType: family,
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: [pod.addresses[family]], nodeName: 'node1' }],
  };
}

async function ask(address: string, port: number): Promise<string> {
  return (await client.probe({ protocol: 'http', address, port, timeout: 500 })).status;
}

/** Addresses on which something in the node listens for health checks. */
async function listeners(): Promise<readonly string[]> {
  const { stdout } = await node.run('ss', ['-Hltn', `sport = :${ports.health}`]);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (line.split(/\s+/)[3] ?? '').replace(/:\d+$/, '').replaceAll(/[[\]]/g, ''));
}

async function ip(...args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await node.run('ip', args);
  if (exitCode !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
}

test.each(['127.0.0.1', '::1'])(
  'a health check answers on %s, which is selected, to the node itself',
  async (address) => {
    await using self = await createProber(node, signal);
    expect(await listeners()).toContain(address);
    const answer = await self.probe({ protocol: 'http', address, port: ports.health, path: '/' });
    expect(answer).toMatchObject({ status: 'answered', httpStatus: 200 });
  },
);

/** `nodad`: usable at once, as on an interface where duplicates were ruled out before. */
function addressArgs(address: string): readonly string[] {
  return address.includes(':') ? [`${address}/128`, 'nodad'] : [`${address}/32`];
}

describe.each(ipFamilies)('an address of %s that comes and goes while the agent runs', (family) => {
  const { inside, outside } = later[family];

  test('answers NodePorts and health checks once it is there, and only if it is selected', async () => {
    expect(await ask(inside, ports.service)).not.toBe('answered');
    await ip('link', 'add', 'extra', 'type', 'veth', 'peer', 'name', 'far-end');
    await ip('link', 'set', 'far-end', 'up');
    await ip('link', 'set', 'extra', 'up');
    await ip('address', 'add', ...addressArgs(inside), 'dev', 'extra');
    await ip('address', 'add', ...addressArgs(outside), 'dev', 'extra');
    await until(async () => (await ask(inside, ports.health)) === 'answered');
    expect(await ask(inside, ports.service)).toBe('answered');
    expect(await ask(outside, ports.service)).toBe('refused');
    expect(await ask(outside, ports.health)).toBe('refused');
    expect(await listeners()).toContain(inside);
    expect(await listeners()).not.toContain(outside);
  });

  test('is listened on no more once it is gone, while the others go on', async () => {
    await ip('address', 'delete', ...addressArgs(inside).slice(0, 1), 'dev', 'extra');
    await until(async () => !(await listeners()).includes(inside));
    expect(await listeners()).toContain(node.addresses[family]);
    expect(await ask(node.addresses[family] ?? '', ports.health)).toBe('answered');
    await ip('link', 'delete', 'extra');
  });

  test('counts on the loopback interface, too, where virtual addresses are put', async () => {
    await ip('address', 'add', ...addressArgs(inside), 'dev', 'lo');
    await until(async () => (await ask(inside, ports.health)) === 'answered');
    expect(await ask(inside, ports.service)).toBe('answered');
    await ip('address', 'delete', ...addressArgs(inside).slice(0, 1), 'dev', 'lo');
    await until(async () => !(await listeners()).includes(inside));
  });

  test('counts from the moment its interface comes up', async () => {
    await ip('link', 'add', 'extra', 'type', 'veth', 'peer', 'name', 'far-end');
    await ip('link', 'set', 'far-end', 'up');
    if (family === 'IPv4') {
      // Else the link-local address that comes with the interface would show it, too.
      for (const name of ['extra', 'far-end']) {
        await node.run('sh', ['-c', `echo 1 >/proc/sys/net/ipv6/conf/${name}/disable_ipv6`]);
      }
      await ip('address', 'add', ...addressArgs(inside), 'dev', 'extra');
      await systemClock.sleep(millis(600), signal); // that event has passed
    }
    await ip('link', 'set', 'extra', 'up');
    // Going down takes addresses of IPv6 away; those of IPv4 stay, and the kernel speaks of the link only.
    if (family === 'IPv6') await ip('address', 'add', ...addressArgs(inside), 'dev', 'extra');
    await until(async () => (await ask(inside, ports.health)) === 'answered');
    expect(await ask(inside, ports.service)).toBe('answered');
    await ip('link', 'delete', 'extra');
    await until(async () => !(await listeners()).includes(inside));
  });
});
