import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { nodeEndpoints } from './node-endpoints.ts';

const file = fileURLToPath(new URL('../cluster.yaml', import.meta.url));
const yaml = readFileSync(file, 'utf8');
const program = fileURLToPath(new URL('main.ts', import.meta.url));

// Where NO_COLOR and FORCE_COLOR are both set, Node warns on stderr, with its PID.
const env = { ...process.env, NODE_NO_WARNINGS: '1' };

function run(args: readonly string[], input = ''): { readonly status: number | null; readonly text: string } {
  const all = ['--conditions=@switchyard/source', program, ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { input, encoding: 'utf8', env });
  return { status, text: stdout + stderr };
}

test('the node with the only local endpoint goes on using it for externalTrafficPolicy Local while it terminates', () => {
  const answer = nodeEndpoints({ yaml, node: 'worker1' });
  expect(answer).toContain(
    'loadBalancerIP 198.51.100.7 port 80, from outside: 10.244.1.5 port 8080 (this node, terminating)',
  );
  expect(answer).toContain('loadBalancerIP 198.51.100.7 port 80, from node: 10.244.2.5 port 8080 (worker2)');
});

test('another node answers by its own endpoints', () => {
  const answer = nodeEndpoints({ yaml, node: 'worker2' });
  expect(answer).toContain('loadBalancerIP 198.51.100.7 port 80, from everywhere: 10.244.2.5 port 8080 (this node)');
  expect(answer).toContain('clusterIP 10.96.0.20 port 9200, from everywhere: 10.244.2.6 port 9200 (this node)');
  expect(answer).toContain('clusterIP fd00:10:96::20 port 9200, from everywhere: dropped');
});

test('a Service without endpoints is refused on every node', () => {
  expect(nodeEndpoints({ yaml, node: 'worker2' })).toContain(
    'shop/mail:smtp/TCP (IPv4)\n  clusterIP 10.96.0.30 port 25, from everywhere: refused, there is no endpoint anywhere',
  );
});

test('the program reads a file, or standard input', () => {
  const fromFile = run(['--node', 'worker1', file]);
  expect(fromFile.status).toBe(0);
  expect(run(['--node', 'worker1'], yaml)).toEqual(fromFile);
});

test.each([
  [['--node', 'worker9', file], 1, /no Node 'worker9' in the input; its Nodes: worker1, worker2/],
  [['--node', 'worker1', '/nowhere.yaml'], 1, /ENOENT.*nowhere\.yaml/],
  [[file], 2, /usage: node-endpoints/],
] as const)('%j ends with %i', (args, status, text) => {
  const result = run(args);
  expect(result.status).toBe(status);
  expect(result.text).toMatch(text);
});

test('input that is no list of Kubernetes objects is reported with its place', () => {
  const { status, text } = run(['--node', 'worker1'], 'apiVersion: v1\nkind: Service\nmetadata: {name: 7}\n');
  expect(status).toBe(1);
  expect(text).toMatch(/line \d+, column \d+/);
});
