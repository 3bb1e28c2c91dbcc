import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { drainLosses, type Loss, readCluster } from './drain.ts';

const file = fileURLToPath(new URL('../cluster.json', import.meta.url));
const cluster = readFileSync(file, 'utf8');
const program = fileURLToPath(new URL('main.ts', import.meta.url));

// Where NO_COLOR and FORCE_COLOR are both set, Node warns on stderr, with its PID.
const env = { ...process.env, NODE_NO_WARNINGS: '1' };

interface Result {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(args: readonly string[], input = ''): Result {
  const all = ['--conditions=@switchyard/source', program, ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { input, encoding: 'utf8', env });
  return { status, stdout, stderr };
}

/** Losses of one Service, one line each. */
function lines(node: string, service: string, kept: readonly string[] = []): readonly string[] {
  const losses = drainLosses(readCluster([{ name: 'cluster.json', text: cluster }]), { node, kept });
  const text = ({ frontend: { kind, port }, where, from, answer, healthCheckNodePort: check }: Loss): string =>
    `${kind} ${port} ${where} ${from.join()} ${answer}${check === undefined ? '' : ` ${check}`}`;
  return losses.filter((loss) => loss.service === service).map(text);
}

const everyone = 'pod,node,outside';

test.each([
  ['only usable endpoint: refused from everywhere', 'shop/db', [`clusterIP 5432 everywhere ${everyone} reject`]],
  ['only endpoint of an IPv6 Service', 'shop/mail', [`clusterIP 25 everywhere ${everyone} reject`]],
  [
    'externalTrafficPolicy Local: the node answers the outside no more; its own pods reach other nodes',
    'shop/cart',
    ['loadBalancerIP 80 node outside drop 31000', 'nodePort 30080 node outside drop 31000'],
  ],
  [
    'externalTrafficPolicy Local and no endpoint elsewhere: other nodes answered their own pods only',
    'shop/legacy',
    [
      `clusterIP 80 everywhere ${everyone} reject`,
      'nodePort 30081 everywhere pod,node reject',
      'nodePort 30081 node outside reject',
    ],
  ],
  [
    'internalTrafficPolicy Local: only senders on the node',
    'kube-system/node-dns',
    [`clusterIP 53 node ${everyone} drop`],
  ],
  ['endpoints on both nodes: no loss', 'shop/web', []],
  ['endpoint without a node: no loss', 'default/kubernetes', []],
] as const)('%s', (_, service, expected) => {
  expect([...lines('worker1', service)].sort()).toEqual([...expected].sort());
});

test('a node with endpoints that others replace costs only what is local', () => {
  expect(lines('worker2', 'shop/db')).toEqual([]);
  expect(lines('worker2', 'shop/cart')).toEqual(lines('worker1', 'shop/cart'));
});

test('the pods of a kept Service stay', () => {
  expect(lines('worker1', 'kube-system/node-dns', ['kube-system/node-dns'])).toEqual([]);
});

test('the program prints a table and exits with 1, from a file or from standard input', () => {
  const fromFile = run(['--node', 'worker1', file]);
  expect(fromFile).toMatchObject({ status: 1, stderr: '' });
  expect(fromFile.stdout).toMatch(/^draining worker1: 5 Services lose traffic /);
  expect(fromFile.stdout).toMatch(
    /^shop\/db:\/TCP +clusterIP 10\.96\.0\.30:5432 +every node +pod, node, outside +refused$/m,
  );
  expect(fromFile.stdout).toMatch(
    /^shop\/cart:http\/TCP .* worker1 only +outside +no answer; healthCheckNodePort 31000 fails$/m,
  );
  expect(run(['--node', 'worker1'], cluster)).toEqual(fromFile);
});

test('--json prints the losses as data', () => {
  const { status, stdout } = run(['--node', 'worker1', '--json', file]);
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toContainEqual({
    service: 'shop/db',
    port: '',
    protocol: 'TCP',
    ipFamily: 'IPv4',
    frontend: { kind: 'clusterIP', address: '10.96.0.30', port: 5432 },
    where: 'everywhere',
    from: ['pod', 'node', 'outside'],
    answer: 'reject',
  });
});

test('a drain without loss exits with 0', () => {
  const safe = JSON.parse(cluster) as { readonly items: readonly { readonly metadata: { readonly name: string } }[] };
  const items = safe.items.filter(({ metadata: { name } }) => /^(web|worker|kubernetes)/.test(name));
  const input = JSON.stringify({ ...safe, items });
  expect(run(['--node', 'worker1'], input)).toEqual({
    status: 0,
    stdout: 'draining worker1: no Service loses traffic\n',
    stderr: '',
  });
  expect(run(['--node', 'worker1', '--json'], input)).toEqual({ status: 0, stdout: '[]\n', stderr: '' });
});

test.each([
  [['--node', 'worker9', file], '', /^drain: there is no Node 'worker9' in the input; it holds: worker1, worker2$/m],
  [
    ['--node', 'worker1', '--keep', 'shop/x', file],
    '',
    /no Service 'shop\/x' in the input; it holds: default\/kubernetes/,
  ],
  [['--node', 'worker1', '/nowhere.json'], '', /ENOENT.*nowhere\.json/],
  [
    ['--node', 'worker1', file, file],
    '',
    /cluster\.json:\d+:1: Service shop\/db is already defined in .*cluster\.json:\d+/,
  ],
  [['--node', 'worker1'], '', /the input holds no Service; make it with: kubectl get/],
  [
    ['--node', 'worker1'],
    '{"kind":"List","apiVersion":"v1","items":[{"kind":"Service","apiVersion":"v1"}]}',
    /metadata/,
  ],
  [['--node', 'worker1'], '{"kind": ', /standard input:\d+:\d+: /],
  [[file], '', /--node is missing\n\nusage: drain/],
  [['--nod', 'x'], '', /Unknown option '--nod'/],
] as const)('%j with the input %j ends with 2 and the reason', (args, input, reason) => {
  const { status, stdout, stderr } = run(args, input);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(reason);
});
