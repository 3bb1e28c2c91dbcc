import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ipFamilies, ipFamilyOf, parseIp } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createLab,
  createProber,
  type LabCluster,
  type LabCommandResult,
  type LabNode,
  startCluster,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { debianKubectl } from '../debian-kubectl.ts';

// The plug-in as a user runs it, with a real kubectl, against agents of two nodes.

const program = fileURLToPath(new URL('../../bin/kubectl-switchyard', import.meta.url));
const agentProgram = fileURLToPath(new URL('../../../node-agent/bin/switchyard-agent', import.meta.url));
const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
let cluster: LabCluster;
let nodes: readonly [LabNode, LabNode];
/** A pod of the Service on the first node, and its address on the second. */
let caller: string;
let remoteAddress: string;
let clusterIp: string;
/** Debian's, the oldest that the manifests are for. */
let kubectl: string;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'plugin', nodes: 2, ipFamilies }, signal));
  nodes = cluster.lab.nodes as unknown as [LabNode, LabNode];
  await cluster.startAgents({ args: ['--metrics-bind-address=0.0.0.0:10249'] }, signal);
  const { deployment, service } = zeroapp({ replicas: 2, port: 8080, delayShutdown: 0, terminationGracePeriod: 1 });
  clusterIp = (await cluster.api.create(apiResources.services, service, signal)).spec?.clusterIP ?? '';
  await cluster.api.create(apiResources.deployments, deployment, signal);
  const empty = { metadata: { name: 'empty', namespace: 'default' }, spec: { ports: [{ port: 80 }] } };
  await cluster.api.create(apiResources.services, empty, signal);
  const podOn = async (node: LabNode) => {
    const { items } = await cluster.api.list(apiResources.pods, { namespace: 'default' }, signal);
    return items.find(({ spec, status }) => spec?.nodeName === node.nodeName && status?.podIP !== undefined);
  };
  await until(async () => (await podOn(nodes[0])) !== undefined && (await podOn(nodes[1])) !== undefined);
  caller = (await podOn(nodes[0]))?.metadata?.name ?? '';
  remoteAddress = (await podOn(nodes[1]))?.status?.podIP ?? '';
  for (const node of nodes) {
    const prober = stack.use(await createProber(node, signal));
    const answeredBy = new Set<string>();
    await until(async () => {
      const result = await prober.probe({ protocol: 'http', address: clusterIp, port: 80, path: '/' });
      if (result.status === 'answered') answeredBy.add(result.by ?? '');
      return answeredBy.size === 2;
    });
  }
  await addNeighbour((await podOn(nodes[0]))?.status?.podIPs ?? []);
  kubectl = await debianKubectl(signal);
});

/** A pod with the caller's addresses in another cluster on this machine, as two kind clusters have. */
async function addNeighbour(podIps: readonly { readonly ip: string }[]): Promise<void> {
  const lab = stack.use(await createLab({ name: 'plugin2', nodes: 1, ipFamilies }, signal));
  const [node] = lab.nodes as [LabNode];
  const addresses = podIps.map(({ ip }) => parseIp(ip));
  const pod = await lab.addPod(node, 'same', Object.fromEntries(addresses.map((one) => [ipFamilyOf(one), one])));
  pod.spawn('sleep', ['600']);
}

/** Asks every 50 ms for 20 s at most. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('did not come true within 20 s');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

afterAll(() => stack.disposeAsync());

/** Runs the plug-in at the API server's host, from which nodes can be reached. */
function plugin(...args: readonly string[]): Promise<LabCommandResult> {
  const agents = nodes.map((node) => `--agent=${node.nodeName}=http://${node.addresses.IPv4}:10249`);
  const all = [...args, ...agents, `--kubeconfig=${cluster.insideKubeconfig}`];
  return cluster.lab.apiServer.run(program, all, { env: { KUBECTL: kubectl } });
}

async function shell(node: LabNode, command: string): Promise<void> {
  const { exitCode, stderr } = await node.run('sh', ['-c', command]);
  expect(exitCode, stderr).toBe(0);
}

test('status shows a line for each node and family', async () => {
  const { exitCode, stdout, stderr } = await plugin('status');
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
  const [head = '', ...rows] = stdout.trim().split('\n');
  expect(head).toMatch(/^NODE +MODE +VERSION +FAMILY +SERVICES +APPLIED +PENDING +FAILED +CONNTRACK$/);
  expect(rows.map((row) => row.split(/ {3,}/).slice(0, 5))).toMatchObject([
    ['node1', 'nftables', expect.any(String), 'IPv4', '2'],
    ['node1', 'nftables', expect.any(String), 'IPv6', '0'],
    ['node2', 'nftables', expect.any(String), 'IPv4', '2'],
    ['node2', 'nftables', expect.any(String), 'IPv6', '0'],
  ]);
});

test('table shows that all nodes agree about a Service', async () => {
  const { exitCode, stdout, stderr } = await plugin('table', 'zeroapp');
  expect(stderr).toBe('');
  expect(stdout).toContain('all nodes agree');
  expect(stdout).toMatch(/^node1 +IPv4 +default\/zeroapp:http\/TCP +applied +\d+ +2\/2 +1\/2$/m);
  expect(exitCode).toBe(0);
});

test('why --probe: a Service that works', async () => {
  const { exitCode, stdout } = await plugin('why', caller, 'zeroapp', '--probes=1');
  expect(stdout).toMatch(new RegExp(`^\\S+ -> ${clusterIp}:80/TCP \\(default/zeroapp:http/TCP\\)$`, 'm'));
  expect(stdout).toMatch(
    /^verdict {2}works\nwhere {4}end to end\nwhy {6}the probe was answered after \S+ ms\nchange {3}nothing\nsure {5}sure$/m,
  );
  expect(exitCode).toBe(0);
});

test('why --probe: enough probes to meet all endpoints', async () => {
  const { exitCode, stdout } = await plugin('why', caller, 'zeroapp', '--probe');
  expect(stdout).toMatch(/^why {6}all 10 probes were answered, the slowest after \S+ ms$/m);
  expect(exitCode).toBe(0);
});

test('why: a port on which no endpoint listens, be it on this node or on the other', async () => {
  const serviceOf = (name: string, selector?: Readonly<Record<string, string>>) => ({
    metadata: { name, namespace: 'default' },
    spec: { ports: [{ port: 80, targetPort: 9999 }], ...(selector === undefined ? {} : { selector }) },
  });
  await cluster.api.create(apiResources.services, serviceOf('deaf', { app: 'zeroapp' }), signal);
  await cluster.api.create(apiResources.services, serviceOf('deaf-remote'), signal);
  const labels = { 'kubernetes.io/service-name': 'deaf-remote' };
  const slice = {
    metadata: { name: 'deaf-remote-1', namespace: 'default', labels },
    addressType: 'IPv4' as const,
    ports: [{ port: 9999 }],
    endpoints: [{ addresses: [remoteAddress], nodeName: nodes[1].nodeName }],
  };
  await cluster.api.create(apiResources.endpointSlices, slice, signal);
  const isApplied = async (name: string, count: string): Promise<boolean> => {
    const { stdout: table } = await plugin('table', name);
    return [...table.matchAll(new RegExp(`applied +\\d+ +${count}/${count} `, 'g'))].length === 2;
  };
  await until(async () => (await isApplied('deaf', '2')) && (await isApplied('deaf-remote', '1')));
  const { exitCode, stdout } = await plugin('why', caller, 'deaf', '--probes=20');
  expect(stdout).toMatch(/^why {6}nothing listens on \S+:9999 \[noListener, kernel: NO_SOCKET\]$/m);
  expect(exitCode).toBe(2);
  const remote = await plugin('why', caller, 'deaf-remote', '--probe');
  expect(remote.stdout).toMatch(/^where {4}node node2, in the namespace of the pod$/m);
  expect(remote.stdout).toMatch(/^why {6}nothing listens on \S+:9999 \[noListener, kernel: NO_SOCKET\]$/m);
});

test('why --from-outside: by NodePort where there is no load balancer', async () => {
  const asked = ['why', 'zeroapp', '--from-outside=172.18.0.100'];
  const { stderr } = await plugin(...asked);
  expect(stderr).toMatch(
    /Service zeroapp has no load-balancer IP in its status; name a node with --node to use its NodePort/,
  );
  const { stdout, exitCode } = await plugin(...asked, '--node=node1', '--seconds=1');
  expect(stdout).toMatch(
    /^172\.18\.0\.100 -> 172\.18\.0\.11:3\d+\/TCP \(default\/zeroapp:http\/TCP\)\nverdict {2}forwarded$/m,
  );
  expect(exitCode).toBe(0);
});

test('why --follow: answers again when the answer changes', async () => {
  const agents = nodes.map((node) => `--agent=${node.nodeName}=http://${node.addresses.IPv4}:10249`);
  const args = ['why', caller, 'later', '--probe', '--follow', ...agents, `--kubeconfig=${cluster.insideKubeconfig}`];
  const later = {
    metadata: { name: 'later', namespace: 'default' },
    spec: { ports: [{ port: 80, targetPort: 8080 }] },
  };
  await cluster.api.create(apiResources.services, later, signal);
  const following = cluster.lab.apiServer.spawn(program, args, { env: { KUBECTL: kubectl }, logName: 'follow' });
  const shown = async () =>
    [...(await readFile(following.logFile, 'utf8')).matchAll(/^verdict {2}(\w+)$/gm)].map(([, one]) => one);
  await until(async () => (await shown()).length === 1);
  const selector = { kind: 'merge', body: { spec: { selector: { app: 'zeroapp' } } } } as const;
  await cluster.api.patch(apiResources.services, { namespace: 'default', name: 'later' }, selector, signal);
  await until(async () => (await shown()).length === 2);
  await following.stop();
  expect(await following.ended).toBe(2);
  expect(await shown()).toEqual(['refused', 'works']);
});

test("the agent's own program answers on its node", async () => {
  const [node] = nodes;
  const callerAddress = (await cluster.api.get(apiResources.pods, { namespace: 'default', name: caller }, signal))
    .status?.podIP;
  const question = ['why', callerAddress ?? '', `${clusterIp}:80`, '--probes=2'];
  const { exitCode, stdout } = await node.run(agentProgram, question);
  expect(stdout).toMatch(/^verdict {2}it works$/m);
  expect(stdout).toMatch(/^why {6}all 2 probes were answered, the slowest after \S+ ms$/m);
  expect(exitCode).toBe(0);
  const refused = await node.run(agentProgram, ['why', callerAddress ?? '', 'nothing']);
  expect(refused.stderr).toMatch(/the agent answered 400 to GET .*: to "nothing" is not ADDRESS:PORT\/PROTOCOL/);
  expect(refused.exitCode).toBe(1);
});

test('why: a Service without endpoints', async () => {
  const { exitCode, stdout } = await plugin('why', caller, 'empty:80', '--probe');
  expect(stdout).toMatch(/^verdict {2}refused$/m);
  expect(stdout).toMatch(
    /^why {6}no endpoint of default\/empty:\/TCP is usable anywhere \[noEndpoints, kernel: NETFILTER_DROP\]$/m,
  );
  expect(exitCode).toBe(2);
});

test("why: a packet that the endpoint's node drops", async () => {
  const [, other] = nodes;
  const local = (await cluster.api.list(apiResources.endpointSlices, { namespace: 'default' }, signal)).items.length;
  expect(local).toBeGreaterThan(0);
  await shell(
    other,
    `nft 'table inet other { chain c { type filter hook forward priority 0 ; ip daddr ${remoteAddress} drop ; } ; }'`,
  );
  try {
    const { stdout: found } = await plugin('why', caller, 'zeroapp', '--probes=20');
    expect(found).toMatch(/^verdict {2}lost$/m);
    expect(found).toMatch(/^where {4}node node2, in the namespace of the node, at the hook forward$/m);
    expect(found).toMatch(
      /^why {6}\d+ of 20 probes: a rule that is not of the Service proxy dropped it.*; it is rule 1 of chain inet other c \(handle \d+\) \[otherRule, kernel: NETFILTER_DROP\]$/m,
    );
  } finally {
    await shell(other, 'nft delete table inet other');
  }
});

test('losses shows lost packets of all nodes, and reports them by its exit status', async () => {
  const watching = plugin('losses', '--seconds=4', '--output=json', '--namespace=default');
  const address =
    (await cluster.api.get(apiResources.services, { namespace: 'default', name: 'empty' }, signal)).spec?.clusterIP ??
    '';
  const probers = await Promise.all(nodes.map((node) => createProber(node, signal)));
  for (let round = 0; round < 6; round++) {
    await Promise.all(probers.map((prober) => prober.probe({ protocol: 'connect', address, port: 80, timeout: 300 })));
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  for (const prober of probers) await prober[Symbol.asyncDispose]();
  const { exitCode, stdout } = await watching;
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { node: string; cause: string; service?: string })
    .filter(({ service }) => service?.startsWith('default/empty:') === true); // the first second may hold losses of the test before
  expect([...new Set(lines.map(({ node, cause, service }) => `${node} ${cause} ${service}`))].toSorted()).toEqual([
    'node1 noEndpoints default/empty:/TCP',
    'node2 noEndpoints default/empty:/TCP',
  ]);
  expect(exitCode).toBe(2);
});

test('ui serves the page with the nodes and a loss', async () => {
  const agents = nodes.map((node) => `--agent=${node.nodeName}=http://${node.addresses.IPv4}:10249`);
  const { apiServer } = cluster.lab;
  const ui = apiServer.spawn(program, ['ui', '--port=8088', ...agents], { logName: 'ui' });
  const get = async (path: string) =>
    (await apiServer.run('curl', ['--silent', '--max-time', '5', `http://127.0.0.1:8088${path}`])).stdout;
  await until(async () => (await get('/')).includes('lost packets of Services'));
  const status = JSON.parse(await get('/api/status')) as readonly { readonly node: string }[];
  expect(status.map(({ node }) => node).toSorted()).toEqual(['node1', 'node2']);
  const loss = /^data: .*"cause":"noEndpoints".*"service":"default\/empty:\/TCP"/m;
  await until(async () => {
    const [stream] = await Promise.all([get('/api/events'), plugin('why', caller, 'empty', '--probe')]);
    return loss.test(stream); // where programs start slowly, the first stream may be over too soon
  });
  await ui.stop();
  expect(await readFile(ui.logFile, 'utf8')).toBe('http://127.0.0.1:8088/ shows 2 nodes; ^C ends it\n');
});

test.each([
  [['why', 'nobody', 'zeroapp'], /get pod nobody .*NotFound/],
  [['why', 'zeroapp'], /usage: kubectl switchyard why POD SERVICE\[:PORT\]; got 1 arguments/],
  [['look'], /unknown command "look": one of status, table, losses, why, ui/],
  [['losses', '--seconds=0'], /--seconds "0" is no number from 1 to 3600/],
  [['status', '--agent=x'], /--agent "x" is not NODE=URL/],
])('%j fails with a reason and exit status 1', async (args, reason) => {
  const { exitCode, stderr } = await plugin(...args);
  expect(stderr).toMatch(/^kubectl-switchyard: [^\n]+\n$/);
  expect(stderr).toMatch(reason);
  expect(exitCode).toBe(1);
});

test('an agent that cannot be reached is named', async () => {
  const { exitCode, stderr } = await cluster.lab.apiServer.run(program, [
    'status',
    '--agent=node9=http://127.0.0.1:10251',
  ]);
  expect(stderr).toMatch(/cannot reach the agent of node9 at http:\/\/127\.0\.0\.1:10251: connect ECONNREFUSED/);
  expect(exitCode).toBe(2);
});
