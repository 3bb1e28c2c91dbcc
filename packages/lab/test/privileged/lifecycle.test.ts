import { fork, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ipFamilies, millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { createLab, destroyLab, type Lab, listLabs } from '../../src/index.ts';
import { labTraces } from './lab-traces.ts';

const { signal } = new AbortController();
const owners = fileURLToPath(new URL('./lab-owner.ts', import.meta.url));

function make(name: string, nodes = 1): Promise<Lab> {
  return createLab({ name, nodes, ipFamilies }, signal);
}

/** A process that owns lab `name`, spawns a sleeper in each of a node and a pod, and then waits to be killed. */
async function startOwner(name: string): Promise<{ owner: ChildProcess; sleepers: readonly number[] }> {
  const owner = fork(owners, [name], { execArgv: ['--conditions=@switchyard/source'], stdio: 'inherit' });
  const sleepers = await new Promise<readonly number[]>((resolve, reject) => {
    owner.once('message', (message) => resolve(message as readonly number[]));
    owner.once('exit', (code) => reject(new Error(`the owner ended with ${code}`)));
  });
  return { owner, sleepers };
}

async function killOwner(owner: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => owner.once('exit', resolve));
  owner.kill('SIGKILL');
  await ended;
}

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
}

test('a dual-stack lab of 3 nodes is built in under 1.5 s and leaves nothing behind', async () => {
  const started = performance.now();
  const lab = await make('labfast', 3);
  expect(performance.now() - started).toBeLessThan(1500);
  expect(lab.nodes.map((node) => node.zone)).toEqual(['zone-a', 'zone-b', 'zone-c']);
  await lab[Symbol.asyncDispose]();
  await lab[Symbol.asyncDispose]();
  expect(await labTraces('labfast')).toEqual([]);
});

test('the machine has no new interface, route or address, and no lab namespace leads to it', async () => {
  const machine = (): string =>
    [
      readdirSync('/sys/class/net').sort().join(),
      readFileSync('/proc/net/route', 'utf8'),
      readFileSync('/proc/net/if_inet6', 'utf8'),
    ].join('\n');
  const before = machine();
  await using lab = await make('labiso', 2);
  await lab.addPod(lab.nodes[0]!, 'pod1');
  expect(machine()).toBe(before);
  for (const host of [...lab.hosts, { namespace: 'swy-labiso-switch', run: undefined }]) {
    const enter = [`--net=/run/netns/${host.namespace}`, 'ip', '-o', 'link'];
    const links = await lab.client.run('nsenter', enter);
    // Every cable ends in another namespace of the lab; the machine's own has an id in none of them.
    const peers = [...links.stdout.matchAll(/link-netns (\S+)/g)].map(([, name]) => name);
    expect(links.exitCode).toBe(0);
    expect(peers.length).toBeGreaterThan(0);
    expect(peers.length).toBe([...links.stdout.matchAll(/@if/g)].length);
    expect(peers.every((name) => name?.startsWith('swy-labiso-'))).toBe(true);
  }
});

test('each node has its own cgroup and BPF file system, and its programs are in them', async () => {
  await using lab = await make('labnode', 2);
  expect(lab.limitations).toEqual([]);
  const [node] = lab.nodes;
  const pod = await lab.addPod(node!, 'pod1');
  const inNode = node!.spawn('sleep', ['60']);
  const inPod = pod.spawn('sleep', ['60']);
  await node!.run('true', []); // by now both have been through exec
  const cgroup = async (pid: number): Promise<string> =>
    (await readFile(`/proc/${pid}/cgroup`, 'utf8')).split('\n').find((line) => line.startsWith('0::'))!;
  await expect.poll(() => cgroup(inNode.pid)).toBe('0::/swy-labnode/node1');
  await expect.poll(() => cgroup(inPod.pid)).toBe('0::/swy-labnode/node1/pod1');
  await expect.poll(() => readFileSync(`/proc/${inPod.pid}/comm`, 'utf8')).toBe('sleep\n');
  expect(readlinkSync(`/proc/${inPod.pid}/ns/net`)).not.toBe(readlinkSync(`/proc/${inNode.pid}/ns/net`));
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  for (const { bpffsPath } of lab.nodes) expect(mounts).toContain(`bpf ${bpffsPath} bpf `);
});

test.each([
  { name: 'one that obeys SIGTERM', script: 'exec sleep 60', grace: 5000, ended: 'SIGTERM' },
  {
    name: 'one that exits with a code',
    script: 'trap "exit 7" TERM; while :; do sleep 0.05; done',
    grace: 5000,
    ended: 7,
  },
  {
    name: 'one that ignores SIGTERM',
    script: 'trap "" TERM; while :; do sleep 0.05; done',
    grace: 300,
    ended: 'SIGKILL',
  },
])('stop ends $name', async ({ script, grace, ended }) => {
  await using lab = await make('labstop');
  const program = lab.client.spawn('sh', ['-c', `echo started; ${script}`]);
  await expect.poll(() => readFileSync(program.logFile, 'utf8')).toBe('started\n');
  await program.stop(millis(grace));
  expect(await program.ended).toBe(ended);
  await program.stop();
});

test('a pod that has the name of one before it does not go on with its log files', async () => {
  await using lab = await make('lablog');
  const logOf = async (text: string): Promise<string> => {
    const pod = await lab.addPod(lab.nodes[0]!, 'again');
    const program = pod.spawn('echo', [text], { logName: 'words' });
    await program.ended;
    const log = readFileSync(program.logFile, 'utf8');
    await lab.removePod(pod);
    return log;
  };
  expect([await logOf('first'), await logOf('second')]).toEqual(['first\n', 'second\n']);
});

test('run returns output and exit code, gives standard input, and ends at its timeout with all children', async () => {
  await using lab = await make('labrun');
  const result = await lab.client.run('sh', ['-c', 'cat; echo "$GREETING" >&2; exit 3'], {
    stdin: 'in',
    env: { GREETING: 'hi' },
  });
  expect(result).toEqual({ exitCode: 3, stdout: 'in', stderr: 'hi\n' });
  const late = lab.client.run('sh', ['-c', 'sleep 60 & sleep 60'], { timeout: millis(100) });
  await expect(late).rejects.toThrow(/did not end within 100 ms/);
});

test('a removed pod is gone with its processes, and its name and address can be used again', async () => {
  await using lab = await make('labpod');
  const [node] = lab.nodes;
  const pod = await lab.addPod(node!, 'pod1');
  const program = pod.spawn('sleep', ['60']);
  await lab.removePod(pod);
  await lab.removePod(pod);
  expect(await program.ended).toBe('SIGKILL');
  expect((await node!.run('ip', ['-o', 'link'])).stdout).not.toContain('pod1@');
  const next = await lab.addPod(node!, 'pod2');
  expect([pod.addresses.IPv4, next.addresses.IPv4]).toEqual(['10.244.1.2', '10.244.1.3']);
  const again = await lab.addPod(node!, 'pod1', pod.addresses);
  expect(again.addresses).toEqual(pod.addresses);
  await expect(lab.addPod(node!, 'pod2')).rejects.toThrow(/name is in use/);
});

test('two labs with the same addresses live side by side; removing one leaves the other', async () => {
  await using first = await make('laba');
  await using second = await make('labb');
  const program = second.nodes[0]!.spawn('sleep', ['60']);
  expect((await listLabs()).filter(({ name }) => /^lab[ab]$/.test(name))).toMatchObject([
    { name: 'laba', status: 'running', hosts: ['api', 'client', 'lb', 'node1'] },
    { name: 'labb', status: 'running' },
  ]);
  await first[Symbol.asyncDispose]();
  expect(await labTraces('laba')).toEqual([]);
  expect(isRunning(program.pid)).toBe(true);
  expect((await second.nodes[0]!.run('true', [])).exitCode).toBe(0);
});

test('a lab of a living owner is refused by name and pid, and left alone', async () => {
  const { owner, sleepers } = await startOwner('labown');
  try {
    await expect(make('labown')).rejects.toThrow(new RegExp(`lab labown: it exists and process ${owner.pid} owns it`));
    expect(sleepers.every(isRunning)).toBe(true);
  } finally {
    await killOwner(owner);
    await destroyLab('labown');
  }
});

test('after kill -9 of the owner the lab is listed as dead and removed with its processes', async () => {
  const { owner, sleepers } = await startOwner('labkill');
  await killOwner(owner);
  expect(sleepers.every(isRunning)).toBe(true);
  expect(await listLabs()).toContainEqual(expect.objectContaining({ name: 'labkill', status: 'dead' }));
  await destroyLab('labkill');
  expect(sleepers.some(isRunning)).toBe(false);
  expect(await labTraces('labkill')).toEqual([]);
  await destroyLab('labkill');
});

test('a dead lab makes way for a new one of its name', async () => {
  const { owner, sleepers } = await startOwner('labdead');
  await killOwner(owner);
  await using lab = await make('labdead');
  expect(sleepers.some(isRunning)).toBe(false);
  expect((await lab.client.run('true', [])).exitCode).toBe(0);
});

test('remains without a record are found and removed', async () => {
  const lab = await make('labrest');
  await lab.client.run('rm', ['-r', '/run/switchyard/labrest/lab.json']);
  expect(await listLabs()).toContainEqual(
    expect.objectContaining({ name: 'labrest', status: 'dead', record: undefined }),
  );
  await destroyLab('labrest');
  expect(await labTraces('labrest')).toEqual([]);
});

test('an aborted creation leaves nothing behind', async () => {
  const aborted = AbortSignal.abort(new Error('enough'));
  await expect(createLab({ name: 'lababort', nodes: 1, ipFamilies }, aborted)).rejects.toThrow('enough');
  expect(await labTraces('lababort')).toEqual([]);
});

test.each([
  { name: 'Bad', nodes: 1, families: ipFamilies, message: /not a lab name: "Bad"/ },
  { name: 'lab', nodes: 0, families: ipFamilies, message: /1 to 39 nodes, not 0/ },
  { name: 'lab', nodes: 40, families: ipFamilies, message: /1 to 39 nodes, not 40/ },
  { name: 'lab', nodes: 1, families: [], message: /at least one IP family/ },
])('$name with $nodes nodes and families $families is refused', async ({ name, nodes, families, message }) => {
  await expect(createLab({ name, nodes, ipFamilies: families }, signal)).rejects.toThrow(message);
});
