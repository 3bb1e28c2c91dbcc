import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { labTraces } from './lab-traces.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `./dev lab LINE`; `interruptAt` sends ^C once standard error contains it. */
function lab(line: string, interruptAt?: string): Promise<Finished> {
  const args = ['--conditions=@switchyard/source', main, ...line.split(' ')];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let isInterrupted = false;
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    if (isInterrupted || interruptAt === undefined || !stderr.includes(interruptAt)) return;
    isInterrupted = child.kill('SIGINT');
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

describe('a lab that is up', () => {
  beforeAll(async () => {
    const up = await lab('up --name labcli --nodes 2');
    expect(up.stderr).toContain('Try next:');
    expect(up).toMatchObject({ code: 0, stdout: 'export KUBECONFIG=/run/switchyard/labcli/kubeconfig\n' });
  });

  afterAll(async () => {
    expect(await lab('down --name labcli')).toEqual({ code: 0, stdout: 'removed lab labcli\n', stderr: '' });
    expect(await labTraces('labcli')).toEqual([]);
    expect(await lab('down --name labcli')).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test('is listed with its nodes and owner', async () => {
    expect((await lab('list')).stdout).toMatch(/^labcli: running, 2 nodes, owner \d+, since 20/m);
  });

  test('prints its hosts, addresses and API server', async () => {
    const { stdout } = await lab('status --name labcli');
    expect(stdout).toMatch(/^API server: http:\/\/127\.0\.0\.1:\d+ \(inside: http:\/\/172\.18\.0\.10:6443\)$/m);
    expect(stdout).toMatch(/^ {2}node2 {6}172\.18\.0\.12 fd00:172:18::12$/m);
  });

  test('runs commands in its hosts, with their output and exit code', async () => {
    const ip = await lab('exec --name labcli client -- ip -br addr show dev eth0');
    expect(ip.stdout).toContain('172.18.0.100/24');
    expect((await lab('exec --name labcli client -- false')).code).toBe(1);
    const environment = await lab('exec --name labcli node1 -- printenv KUBECONFIG');
    expect(environment.stdout).toBe('/run/switchyard/labcli/kubeconfig-inside\n');
  });

  test('probes from its hosts', async () => {
    const api = await lab('probe --name labcli --count 2 client http 172.18.0.10 6443');
    expect(api.stdout).toMatch(/^(answered \d+, [\d.]+ ms\n){2}$/);
    expect((await lab('probe --name labcli client tcp 172.18.0.11 1')).stdout).toMatch(/^refused, /);
  });

  test.each([
    { line: 'up --name labcli', says: /^lab: cannot create lab labcli: it exists and process \d+ owns it; .*\n$/ },
    {
      line: 'exec --name labcli moon -- true',
      says: /^lab: lab labcli has no host moon; it has api, client, lb, node1, node2, switch\n$/,
    },
    { line: 'status --name nolab', says: /^lab: there is no lab nolab; / },
    { line: 'up --name Bad', says: /^lab: not a lab name: "Bad"/ },
    { line: 'fly', says: /^lab: unknown command "fly"; see .\/dev lab help\n$/ },
  ])('$line fails with one clear line', async ({ line, says }) => {
    const { code, stderr } = await lab(line);
    expect(code).toBe(1);
    expect(stderr).toMatch(says);
  });
});

test('^C while a lab is built takes down what was built', async () => {
  const { code, stderr } = await lab('up --name labint', 'network of');
  expect(code).toBe(1);
  expect(stderr).toMatch(/^lab: interrupted; the unfinished lab labint has been removed$/m);
  expect(await labTraces('labint')).toEqual([]);
});

test('a lab whose background process was killed can be removed', async () => {
  await lab('up --name labgone --nodes 1');
  const owner = /owner (\d+)/.exec((await lab('status --name labgone')).stdout)?.[1];
  process.kill(Number(owner), 'SIGKILL');
  expect((await lab('list')).stdout).toMatch(/^labgone: dead, 1 nodes, .* remove it with/m);
  expect((await lab('down --name labgone')).stdout).toBe('removed lab labgone\n');
  expect(await labTraces('labgone')).toEqual([]);
});
