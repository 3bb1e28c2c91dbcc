import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { renderBase } from '../../src/haproxy/render-base.ts';
import { containerBaseFile, containerFiles, containerRunDirectory } from '../../src/worker/container-files.ts';
import type { WorkerAnswer, WorkerRequest } from '../../src/worker/protocol.ts';
import { createHaproxyNamespace, type HaproxyNamespace } from './haproxy-namespace.ts';
import { until } from '@switchyard/core/testing';

/** A load balancer's container without an engine: its own network, mounts and processes, HAProxy without rights as process 1. */
export interface FakeContainer extends AsyncDisposable {
  readonly host: HaproxyNamespace;
  /** Runs the worker as `docker exec --user 0` would: root, with no right but NET_ADMIN. */
  work(request: WorkerRequest): Promise<WorkerAnswer>;
  /** Starts the worker and kills it after the given milliseconds, unless it has ended. */
  workUntilKilled(request: WorkerRequest, time: number): Promise<void>;
  /** Ends all its processes and starts HAProxy again; the network begins anew too, as with a real engine. */
  restart(): Promise<void>;
  /** Sends a signal to its first process, as the engine does to stop it. */
  signal(name: NodeJS.Signals): void;
  /** Output of HAProxy. */
  log(): string;
}

const user = ['setpriv', '--reuid=65532', '--regid=0', '--clear-groups', '--bounding-set=-all', '--no-new-privs'];
const workerUser = ['setpriv', '--reuid=0', '--regid=0', '--clear-groups', '--bounding-set=-all,+net_admin'];

/** Does what the image's `switchyard-lb-haproxy` does: the run directory begins empty, then the shell becomes HAProxy. */
const containerCommand: readonly string[] = [
  '/bin/sh',
  '-c',
  [
    `rm -rf ${containerRunDirectory}/*`,
    'umask 0007',
    `exec haproxy -W -S ${containerFiles.masterSocket},mode,660 -f ${containerBaseFile} -f ${containerRunDirectory}`,
  ].join('; '),
];

/** Makes one, with `eth0` at 10.9.0.2/24. */
export async function createFakeContainer(name: string): Promise<FakeContainer> {
  await using stack = new AsyncDisposableStack();
  const host = stack.use(await createHaproxyNamespace(name));
  const sysctl = '/proc/sys/net/ipv4';
  host.run('sh', '-c', `echo 0 > ${sysctl}/ip_unprivileged_port_start && echo 1 > ${sysctl}/ip_forward`);
  host.run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'other');
  host.run('ip', 'link', 'set', 'other', 'up');
  const setUp = (): void => {
    host.run('ip', 'addr', 'add', '10.9.0.2/24', 'dev', 'eth0');
    host.run('ip', 'link', 'set', 'eth0', 'up');
  };
  setUp();
  writeFileSync(join(host.folder, 'base.cfg'), renderBase(containerFiles));
  const boot = [
    'mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /etc',
    `mkdir ${containerRunDirectory} /etc/switchyard-lb && cp ${host.folder}/base.cfg ${containerBaseFile}`,
    `chown 65532:0 ${containerRunDirectory} && chmod 770 ${containerRunDirectory}`,
    'exec "$@"',
  ].join(' && ');
  let written = '';
  const start = async (): Promise<ReturnType<typeof spawn>> => {
    const unshare = ['unshare', '--mount', '--pid', '--fork', 'sh', '-c', boot, 'sh'];
    const child = spawn('nsenter', [`--net=/run/netns/${host.netns}`, ...unshare, ...user, ...containerCommand], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (written += String(chunk)));
    await until('HAProxy in the container', () => written.includes('Loading success'));
    return child;
  };
  let child = await start();
  const bundle = bundleWorker(host.folder);
  /** Empty when it has ended. */
  const processOne = (): string => {
    const file = `/proc/${child.pid}/task/${child.pid}/children`;
    return existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  };
  const stop = async (): Promise<void> => {
    const { exitCode, signalCode } = child;
    if (exitCode !== null || signalCode !== null) return;
    const ended = once(child, 'exit');
    const first = processOne();
    if (first !== '') process.kill(Number(first), 'SIGKILL'); // and with it all of its namespace; `unshare` then ends too
    await ended;
  };
  const owned = stack.move();
  const command = (): readonly string[] => [
    '-t',
    processOne(),
    '--net',
    '--mount',
    '--pid',
    ...workerUser,
    process.execPath,
    bundle,
  ];
  return {
    host,
    log: () => written,
    signal: (name) => void process.kill(Number(processOne()), name),
    async work(request) {
      const options = { timeout: 20_000 as never, signal: AbortSignal.timeout(20_000), stdin: JSON.stringify(request) };
      const { stdout, stderr } = await createCommandRunner().run('nsenter', command(), options);
      if (stdout === '') throw new Error(`the worker gave no answer: ${stderr}`);
      return JSON.parse(stdout) as WorkerAnswer;
    },
    async workUntilKilled(request, time) {
      const worker = spawn('nsenter', command(), { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
      const ended = once(worker, 'exit');
      worker.stdin.on('error', () => undefined).end(JSON.stringify(request));
      await Promise.race([ended, systemClock.sleep(time as never, new AbortController().signal)]);
      if (worker.exitCode === null && worker.pid !== undefined) process.kill(-worker.pid, 'SIGKILL');
      await ended;
    },
    async restart() {
      await stop();
      host.run('ip', 'addr', 'flush', 'dev', 'eth0');
      setUp();
      written = '';
      child = await start();
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await owned.disposeAsync();
    },
  };
}

/** As the image's build does it. */
function bundleWorker(folder: string): string {
  const root = fileURLToPath(new URL('../../../../', import.meta.url));
  const outfile = join(folder, 'worker.mjs');
  const banner = "import {createRequire as __cr} from 'node:module';const require=__cr(import.meta.url);";
  const flags = ['--bundle', '--platform=node', '--format=esm', '--target=node24', '--conditions=@switchyard/source'];
  const source = fileURLToPath(new URL('../../src/worker/main.ts', import.meta.url));
  execFileSync(
    join(root, 'node_modules/.bin/esbuild'),
    [source, ...flags, `--banner:js=${banner}`, `--outfile=${outfile}`],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  const addon = 'switchyard_native.node';
  copyFileSync(join(root, 'packages/native/build', addon), join(folder, addon));
  return outfile;
}
