import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type IpFamily, ipFamilies, millis, parseIp } from '@switchyard/core';
import { situation } from '@switchyard/core/testing';
import { clusterCidrs, createLab, type Lab, type LabNode, type LabPod } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Kernel, signal } from './support.ts';

// Node has no SCTP and no raw sockets, and many kernels have no SCTP. Perl is on every Debian machine.
const program = fileURLToPath(new URL('sctp.pl', import.meta.url));
const vip: Readonly<Record<IpFamily, string>> = { IPv4: '198.51.100.1', IPv6: '2001:db8:51::1' };
const clusterIp: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.1', IPv6: 'fd00:10:96::1' };

let lab: Lab;
let node: LabNode;
let pod: LabPod;

beforeAll(async () => {
  lab = await createLab({ name: 'nfts', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  pod = await lab.addPod(node, 'near');
  await lab.routeToNode(ipFamilies.flatMap((family) => [vip[family], clusterIp[family]]).map(parseIp), node);
  for (const family of ipFamilies) {
    const table = situation(
      {
        diameter: {
          clusterIps: [clusterIp[family]],
          loadBalancerIps: [vip[family]],
          external: 'Local',
          ports: [{ protocol: 'SCTP', port: 3868 }],
          endpoints: [{ ip: pod.addresses[family]!, node: 'n1' }],
        },
      },
      { ipFamily: family, podCidr: clusterCidrs[family] },
    );
    expect(await (await Kernel.open(node, family)).full(table)).toMatchObject({ status: 'applied' });
  }
});

afterAll(() => lab[Symbol.asyncDispose]());

async function sendInit(
  family: IpFamily,
  to: string,
  port: number,
): Promise<{ readonly client: string; readonly server: string }> {
  const serving = pod.spawn('perl', [program, 'serve', family]);
  await waitForReady(serving.logFile);
  const sent = await lab.client.run(
    'perl',
    [program, 'send', family, lab.client.addresses[family]!, to, String(port)],
    {
      timeout: millis(10_000),
    },
  );
  const client = `${sent.stdout}${sent.stderr}`.trim();
  if (client === 'timeout') await serving.stop(millis(0));
  await serving.ended;
  const log = await readFile(serving.logFile, 'utf8');
  return { client, server: log.replace('ready\n', '').trim() };
}

async function waitForReady(logFile: string): Promise<void> {
  for (let round = 0; round < 200; round++) {
    if ((await readFile(logFile, 'utf8').catch(() => '')).includes('ready')) return;
    await once(AbortSignal.timeout(10), 'abort');
  }
  throw new Error(`the SCTP server says nothing in ${logFile}`);
}

describe.each(ipFamilies)('%s', (family) => {
  test('an INIT to a Local load-balancer IP reaches the endpoint with its source, and the answer comes back', async () => {
    expect(await sendInit(family, vip[family], 3868)).toEqual({
      client: `answered ${vip[family]} 3868`,
      server: `${lab.client.addresses[family]} 8080`,
    });
  });

  test('an INIT from outside to the cluster IP is masqueraded', async () => {
    const { client, server } = await sendInit(family, clusterIp[family], 3868);
    expect(client).toBe(`answered ${clusterIp[family]} 3868`);
    expect(server).toMatch(/ 8080$/);
    expect(server).not.toContain(`${lab.client.addresses[family]} `);
  });

  test('another port of the load-balancer IP is not ours', async () => {
    expect(await sendInit(family, vip[family], 3869)).toEqual({ client: 'timeout', server: '' });
  });
});
