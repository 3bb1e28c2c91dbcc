import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, noopLogger, systemClock } from '@switchyard/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { haproxyFiles } from '../haproxy/haproxy-files.ts';
import { renderHaproxy } from '../haproxy/render-haproxy.ts';
import { exampleSpec } from '../testing/example-specs.ts';
import { writeApplied } from './applied-state.ts';
import { containerMaster } from './container-master.ts';
import { runWorker, type WorkerHost } from './worker.ts';

const { signal } = new AbortController();
const spec = exampleSpec('web');
let folder: string;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'swy-worker-'))));
afterEach(() => rmSync(folder, { recursive: true }));

/** A container whose HAProxy finds fault with every configuration, and what was done to its interface. */
function fakeHost(clock: Clock = systemClock): { host: WorkerHost; done: string[] } {
  const files = haproxyFiles(folder);
  const done: string[] = [];
  const note = (what: string) => (): Promise<never> => Promise.resolve(done.push(what) as never);
  const host: WorkerHost = {
    files,
    appliedFile: join(folder, 'applied.json'),
    program: 'haproxy',
    master: containerMaster(files.masterSocket),
    addresses: { add: note('add addresses'), removeOthers: note('remove addresses') },
    routes: { apply: note('routes') },
    openKernel: note('kernel'),
    ownAddresses: () => [],
    runner: {
      run: () => Promise.resolve({ exitCode: 1, stdout: '', stderr: '[ALERT] : refused', signal: undefined }) as never,
    },
    clock,
    log: noopLogger,
  };
  return { host, done };
}

/** Answers `show proc` like the real master, with the given pid. */
function listenAsMaster(pid: number): Disposable {
  const table = `#<PID>          <type>          <reloads>       <uptime>        <version>\n${pid} master 0 0d00h00m01s 2.6.12\n# workers\n9 worker 0 0d00h00m01s 2.6.12\n`;
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.on('data', () => socket.end(table)));
  server.listen(haproxyFiles(folder).masterSocket);
  return { [Symbol.dispose]: () => void server.close() };
}

test('what an earlier run of the container left is not believed: it is gone once HAProxy answers', async () => {
  const { host } = fakeHost();
  const { text } = renderHaproxy({ specs: [spec], ownAddresses: [], weightsPrefix: host.files.weightsPrefix });
  await writeApplied(host.appliedFile, { spec, isPublished: false, text });
  const answer = runWorker({ command: 'apply', spec, isPublished: false }, host, signal);
  await systemClock.sleep(50 as never, signal);
  rmSync(host.appliedFile); // as `switchyard-lb-haproxy` does before it becomes HAProxy
  using _master = listenAsMaster(1);
  expect(await answer).toMatchObject({ status: 'failed', reason: 'HAProxyRejected' });
});

test.each([
  ['nobody', undefined],
  ['a HAProxy that is not process 1, as on a machine', 4711],
])('nothing is touched where %s answers', async (_, pid) => {
  let time = 0;
  const clock = { ...systemClock, monotonic: () => time as never, sleep: () => Promise.resolve(void (time += 1000)) };
  const { host, done } = fakeHost(clock);
  writeFileSync(host.appliedFile, '');
  using _master = pid === undefined ? undefined : listenAsMaster(pid);
  for (const request of [
    { command: 'apply', spec, isPublished: false } as const,
    { command: 'followHealth' } as const,
  ]) {
    expect(await runWorker(request, host, signal)).toMatchObject({
      status: 'failed',
      reason: 'HostRefused',
      message: expect.stringMatching(/^no HAProxy answers on .*master\.sock; look at the container's log$/),
    });
  }
  expect(done).toEqual([]);
});
