import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { createLab, type Lab, type LabNode, type LabProcess } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

const program = fileURLToPath(new URL('../../dist-bundle/main.mjs', import.meta.url));
const { signal } = new AbortController();

let lab: Lab;
let node: LabNode;
let agent: LabProcess;
const folder = (name: string): string => `${lab.folder}/${name}`;

beforeAll(async () => {
  lab = await createLab({ name: 'jsonfile', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  [node] = lab.nodes as [LabNode];
  await mkdir(folder('manifests'));
  await writeFile(folder('manifests/service.yaml'), service);
  await writeFile(folder('manifests/slice.yaml'), sliceTo('10.244.1.5'));
  agent = start();
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

function start(...args: readonly string[]): LabProcess {
  const all = [
    '--proxy-mode=json-file',
    '--hostname-override=node1',
    '--conntrack-max-per-core=0', // it is the whole machine's
    '--oom-score-adj=0',
    `--switchyard-manifests=${folder('manifests')}`,
    ...args,
  ];
  return node.spawn(process.execPath, [program, ...all], { env: { JSON_FILE_FOLDER: folder('json') } });
}

const service = `
apiVersion: v1
kind: Service
metadata: { name: cart, namespace: shop }
spec: { clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ipFamilies: [IPv4], ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: v1
kind: Node
metadata: { name: node1 }
status: { addresses: [{ type: InternalIP, address: 172.18.0.11 }] }
`;

function sliceTo(address: string): string {
  return `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: cart-1, namespace: shop, labels: { kubernetes.io/service-name: cart } }
addressType: IPv4
ports: [{ port: 8080, protocol: TCP }]
endpoints: [{ addresses: [${address}], nodeName: node1, conditions: { ready: true } }]
`;
}

async function endpoints(): Promise<readonly string[] | undefined> {
  const text = await readFile(folder('json/services.IPv4.json'), 'utf8').catch(() => '{}');
  const entries = JSON.parse(text) as Record<string, { readonly endpoints: { readonly Cluster: readonly string[] } }>;
  return Object.entries(entries).find(([key]) => key.startsWith('shop/cart'))?.[1].endpoints.Cluster;
}

const soon = { timeout: 20_000, interval: 50 };

test('the agent writes the file, and writes it again when an endpoint changes or another process changed it', async () => {
  await vi.waitFor(async () => expect(await endpoints()).toEqual(['10.244.1.5:8080']), soon);
  await writeFile(folder('manifests/slice.yaml'), sliceTo('10.244.1.6'));
  await vi.waitFor(async () => expect(await endpoints()).toEqual(['10.244.1.6:8080']), soon);
  await writeFile(folder('json/services.IPv4.json'), '{}\n');
  await vi.waitFor(async () => expect(await endpoints()).toEqual(['10.244.1.6:8080']), soon);
});

test('what the agent wrote stays when it stops, and goes with --cleanup', async () => {
  await agent.stop();
  expect(await endpoints()).toEqual(['10.244.1.6:8080']);
  expect(await start('--cleanup').ended).toBe(0);
  expect(await endpoints()).toBeUndefined();
});
