import { type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { situation } from '@switchyard/core/testing';
import {
  clusterCidrs,
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type Prober,
  type ProbeResult,
  startSctpServers,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Kernel, signal } from './support.ts';

const vip: Readonly<Record<IpFamily, string>> = { IPv4: '198.51.100.1', IPv6: '2001:db8:51::1' };
const clusterIp: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.1', IPv6: 'fd00:10:96::1' };

let lab: Lab;
let node: LabNode;
let pod: LabPod;
let client: Prober;

beforeAll(async () => {
  lab = await createLab({ name: 'nfts', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  pod = await lab.addPod(node, 'near');
  await startSctpServers(pod, 'near', signal);
  client = await createProber(lab.client, signal);
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

const sendInit = async (family: IpFamily, to: string, port: number): Promise<ProbeResult | undefined> => {
  const source = lab.client.addresses[family]!;
  const [result] = await client.sctp({ source, address: parseIp(to), port, count: 1 });
  return result;
};

describe.each(ipFamilies)('%s', (family) => {
  test('an INIT to a Local load-balancer IP reaches the endpoint with its source, and the answer comes back', async () => {
    expect(await sendInit(family, vip[family], 3868)).toMatchObject({
      by: 'near',
      seenSource: lab.client.addresses[family],
      body: '{"destinationPort":8080}',
    });
  });

  test('an INIT from outside to the cluster IP is masqueraded', async () => {
    const result = await sendInit(family, clusterIp[family], 3868);
    expect(result).toMatchObject({ by: 'near', body: '{"destinationPort":8080}' });
    expect(result).not.toMatchObject({ seenSource: lab.client.addresses[family] });
  });

  test('another port of the load-balancer IP is not ours', async () => {
    expect(await sendInit(family, vip[family], 3869)).toMatchObject({ status: 'timeout' });
  });
});
