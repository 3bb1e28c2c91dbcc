import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { debianRoot } from '../../../../tools/debian/debian-root.ts';
import {
  createLab,
  createProber,
  destroyLab,
  type DockerEngine,
  dockerPackages,
  emptyImage,
  type Lab,
  machinePrograms,
  startDockerEngine,
} from '../../src/index.ts';
import { labTraces } from './lab-traces.ts';

const { signal } = new AbortController();
let programs: string;

beforeAll(async () => {
  programs = await debianRoot({ ...dockerPackages, signal });
});

function engineIn(lab: Lab): Promise<DockerEngine> {
  return startDockerEngine({ lab, host: lab.nodes[0]!, programs }, signal);
}

async function run(
  engine: DockerEngine,
  options: readonly string[],
  command: readonly string[],
): ReturnType<DockerEngine['cli']> {
  return engine.cli(['run', '--read-only', ...machinePrograms, ...options, await emptyImage(engine), ...command]);
}

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
}

/** State of the machine that an installed Docker Engine would change. */
function machine(): string {
  const rules = execFileSync('nft', ['list', 'ruleset'], { encoding: 'utf8' });
  const links = execFileSync('ip', ['-o', 'address'], { encoding: 'utf8' });
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .filter((line) => /docker|overlay/.test(line));
  const settings = ['kernel/keys/root_maxkeys', 'net/ipv4/ip_forward'].map((name) =>
    readFileSync(`/proc/sys/${name}`, 'utf8'),
  );
  const sockets = ['/run/docker.sock', '/run/containerd', '/run/docker'].filter((path) => existsSync(path));
  return JSON.stringify({ rules, links, mounts, settings, sockets }).replaceAll(/valid_lft \w+/g, '');
}

describe('a Docker Engine in a lab host', () => {
  let before: string;
  let lab: Lab;
  let engine: DockerEngine;

  beforeAll(async () => {
    before = machine();
    lab = await createLab({ name: 'engine', nodes: 1, ipFamilies: ['IPv4'] }, signal);
    engine = await engineIn(lab);
  });

  afterAll(async () => {
    await lab[Symbol.asyncDispose]();
  });

  test("runs containers in the host's network", async () => {
    const inside = await run(engine, ['--rm', '--network', 'host'], ['ip', '-o', 'address']);
    expect(inside.exitCode).toBe(0);
    expect(inside.stdout).toContain(`${lab.nodes[0]!.addresses.IPv4}/`);
    expect(inside.stdout).toBe((await lab.nodes[0]!.run('ip', ['-o', 'address'])).stdout);
  });

  test('gives a container its granted capabilities, and returns its exit code', async () => {
    const add = ['--rm', '--network', 'host', '--cap-drop', 'ALL'];
    const link = ['ip', 'link', 'add', 'cable7', 'type', 'veth', 'peer', 'name', 'cable8'];
    expect(await run(engine, add, link)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('not permitted') as string,
    });
    expect(await run(engine, [...add, '--cap-add', 'NET_ADMIN'], link)).toMatchObject({ exitCode: 0, stderr: '' });
    expect((await lab.nodes[0]!.run('ip', ['link', 'delete', 'cable7'])).exitCode).toBe(0);
  });

  test('joins containers by a network of its own, and publishes their ports, without a rule', async () => {
    const host = lab.nodes[0]!;
    const made = ['network', 'create', '--subnet', '172.30.0.0/24', '--ipv6', '--subnet', 'fd00:172:30::/64', 'kind'];
    expect(await engine.cli(made)).toMatchObject({ exitCode: 0, stderr: '' });
    const serve = "require('http').createServer((q, r) => r.end('from the container')).listen(80, '::')";
    const network = ['--network', 'kind', '--publish', '8080:80'];
    const started = await run(engine, ['--detach', '--name', 'server', ...network], ['/node', '-e', serve]);
    expect(started).toMatchObject({ exitCode: 0, stderr: '' });
    await using inside = await createProber(host, signal);
    await using outside = await createProber(lab.client, signal);
    const answer = { status: 'answered', httpStatus: 200, body: 'from the container' };
    const http = { protocol: 'http', path: '/', port: 80 } as const;
    for (const address of ['172.30.0.2', 'fd00:172:30::2']) {
      await expect.poll(() => inside.probe({ ...http, address })).toMatchObject(answer);
    }
    expect(await outside.probe({ ...http, address: host.addresses.IPv4 ?? '', port: 8080 })).toMatchObject(answer);
    expect(await host.run('nft', ['list', 'ruleset'])).toMatchObject({ exitCode: 0, stdout: '' });
    await engine.cli(['rm', '--force', 'server']);
  });

  test('leaves the machine as it was', () => {
    expect(machine()).toBe(before);
  });

  test('ends with its containers when any process removes the lab, and leaves nothing behind', async () => {
    await run(engine, ['--detach', '--network', 'host', '--name', 'sleeper'], ['sleep', '600']);
    const sleepers = await engine.pidsOf('sleeper');
    expect(sleepers).toHaveLength(1);
    expect(readFileSync(`/proc/${sleepers[0]}/comm`, 'utf8')).toBe('sleep\n');
    await destroyLab('engine');
    expect([...sleepers, engine.pid].filter(isRunning)).toEqual([]);
    expect(await labTraces('engine')).toEqual([]);
    expect(machine()).toBe(before);
  });
});

test('a second engine starts where the first was disposed, and knows nothing of it', async () => {
  await using lab = await createLab({ name: 'engine2', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  for (const _ of ['first', 'second']) {
    await using engine = await engineIn(lab);
    const network = ['network', 'create', '--subnet', '172.30.0.0/24', 'kind'];
    expect(await engine.cli(network)).toMatchObject({ exitCode: 0, stderr: '' });
    expect((await engine.cli(['images', '--quiet'])).stdout).toBe('');
    await run(engine, ['--detach', '--network', 'host', '--name', 'sleeper'], ['sleep', '600']);
    expect(await engine.pidsOf('sleeper')).toHaveLength(1);
  }
  const left = execFileSync('ip', ['netns', 'pids', lab.nodes[0]!.namespace], { encoding: 'utf8' });
  expect(left).toBe('');
});

test('an engine that cannot start says why, and is gone', async () => {
  await using lab = await createLab({ name: 'engine3', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  const host = lab.nodes[0]!;
  const nowhere = { lab, host, programs: '/nonexistent' } as const;
  await expect(startDockerEngine(nowhere, signal)).rejects.toThrow('/nonexistent/usr/bin/docker');
  const aborted = AbortSignal.abort(new Error('no longer wanted'));
  await expect(startDockerEngine({ ...nowhere, programs }, aborted)).rejects.toThrow('no longer wanted');
  expect(execFileSync('ip', ['netns', 'pids', host.namespace], { encoding: 'utf8' })).toBe('');
});
