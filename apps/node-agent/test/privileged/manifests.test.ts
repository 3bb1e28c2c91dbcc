import { mkdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ipFamilies } from '@switchyard/core';
import {
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';

const program = fileURLToPath(new URL('../../bin/switchyard-agent', import.meta.url));
const { signal } = new AbortController();

let lab: Lab;
let node: LabNode;
let client: Prober;
let agent: LabProcess;
let pods: readonly LabPod[];
let folder: string;

beforeAll(async () => {
  lab = await createLab({ name: 'agentman', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  client = await createProber(lab.client, signal);
  pods = [await lab.addPod(node, 'one'), await lab.addPod(node, 'two')];
  for (const pod of pods) startEchoServer(pod, { pod: pod.name, http: [8080] });
  folder = `${lab.folder}/manifests`;
  await mkdir(folder);
  await writeFile(`${folder}/service.yaml`, service);
  await writeFile(`${folder}/slice.json`, sliceTo(pods[0]));
  agent = node.spawn(program, [
    '--proxy-mode=nftables',
    '--logging-format=json',
    '--conntrack-max-per-core=0', // it is the whole machine's
    '--oom-score-adj=0',
    `--switchyard-manifests=${folder}`,
    '--hostname-override=node1',
    '--cluster-cidr=10.244.0.0/16',
    '--nodeport-addresses=0.0.0.0/0',
  ]);
  await until(async () => (await answeredBy()) === 'one');
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

const service = `
apiVersion: v1
kind: Service
metadata: { name: cart, namespace: shop }
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10]
  ipFamilies: [IPv4]
  externalTrafficPolicy: Local
  healthCheckNodePort: 30081
  ports: [{ name: http, port: 80, targetPort: 8080, nodePort: 30080 }]
---
apiVersion: v1
kind: Node
metadata: { name: node1 }
status: { addresses: [{ type: InternalIP, address: 172.18.0.11 }] }
`;

function sliceTo(pod: LabPod | undefined): string {
  return JSON.stringify({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'cart-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'cart' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: [pod?.addresses.IPv4], nodeName: 'node1' }],
  });
}

/** Who answers at the NodePort, or how it failed. */
async function answeredBy(): Promise<string> {
  const answer = await client.probe({ protocol: 'http', address: node.addresses.IPv4 ?? '', port: 30_080 });
  return answer.status === 'answered' ? (answer.by ?? '') : answer.status;
}

describe('an agent with --switchyard-manifests', () => {
  test('serves what the folder says, health check included', async () => {
    // It listens after the apply, so a moment later than the Service answers.
    await until(async () => {
      const health = await client.probe({ protocol: 'http', address: node.addresses.IPv4 ?? '', port: 30_081 });
      return health.status === 'answered' && health.httpStatus === 200;
    });
  });

  test('follows a file that changes', async () => {
    await writeFile(`${folder}/slice.json`, sliceTo(pods[1]));
    await until(async () => (await answeredBy()) === 'two');
  });

  test('keeps what was good when a file breaks, and says where', async () => {
    await writeFile(`${folder}/slice.json`, '{ "apiVersion": ');
    await until(async () => JSON.stringify(await readLog(agent)).includes('slice.json'));
    expect(await answeredBy()).toBe('two');
  });

  test('follows a file that goes: no endpoint is left, connections are refused', async () => {
    await rm(`${folder}/slice.json`);
    await until(async () => (await answeredBy()) === 'refused');
  });

  test('refuses a folder that is not there, with one line', async () => {
    const result = await node.run(program, [
      '--proxy-mode=nftables',
      '--conntrack-max-per-core=0',
      '--oom-score-adj=0',
      '--switchyard-manifests=/no/such/folder',
    ]);
    expect(result).toMatchObject({ exitCode: 1, stdout: '' });
    expect(result.stderr).toMatch(/^switchyard-agent: --switchyard-manifests: cannot read the folder: .*\n$/);
  });
});
