import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listenInNamespace } from '../../src/apiserver/namespace-sockets.ts';
import { startApiServer } from '../../src/apiserver/server.ts';

const run = promisify(execFile);
const namespaces = ['swy-apisrv-a', 'swy-apisrv-b'];
const fetchScript =
  "fetch('http://127.0.0.1:6443/version').then((r) => r.json()).then((v) => process.stdout.write(v.gitVersion))";

beforeAll(async () => {
  for (const namespace of namespaces) {
    await run('ip', ['netns', 'add', namespace]);
    await run('ip', ['-n', namespace, 'link', 'set', 'lo', 'up']);
  }
});

afterAll(async () => {
  for (const namespace of namespaces) await run('ip', ['netns', 'delete', namespace]);
});

test('one server answers in two network namespaces and nowhere else', async () => {
  await using server = await startApiServer();
  const signal = AbortSignal.timeout(20_000);
  for (const namespace of namespaces) {
    const handle = await listenInNamespace({ namespace, host: '127.0.0.1', port: 6443 }, signal);
    expect(await server.listen(handle)).toEqual({ url: 'http://127.0.0.1:6443' });
  }
  for (const namespace of namespaces) {
    const enter = [`--net=/run/netns/${namespace}`, process.execPath, '-e', fetchScript];
    expect((await run('nsenter', enter)).stdout).toBe('v1.36.2');
  }
  const ownSockets = await readFile('/proc/self/net/tcp', 'utf8');
  expect(ownSockets).not.toContain('0100007F:192B 00000000:0000 0A');
});

test('an address that the namespace does not have is reported with namespace and address', async () => {
  const where = { namespace: namespaces[0]!, host: '192.0.2.1', port: 6443 };
  await expect(listenInNamespace(where, AbortSignal.timeout(20_000))).rejects.toThrow(
    /192\.0\.2\.1 port 6443 in network namespace swy-apisrv-a.*EADDRNOTAVAIL/,
  );
});

test('a namespace that does not exist is reported', async () => {
  const where = { namespace: 'swy-apisrv-none', host: '127.0.0.1', port: 6443 };
  await expect(listenInNamespace(where, AbortSignal.timeout(20_000))).rejects.toThrow(/swy-apisrv-none/);
});
