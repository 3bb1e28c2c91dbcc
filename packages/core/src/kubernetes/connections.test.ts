import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { TLSSocket } from 'node:tls';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError } from '../base/errors.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { ScriptedApiServer } from '../testing/scripted-api-server.ts';
import { seconds, systemClock } from '../base/time.ts';
import { newApiClient } from './api-client.ts';
import type { ApiServerConnection } from './api-server-connection.ts';
import { inClusterConnection } from './credentials.ts';
import { kubeconfigConnection, kubeconfigTextConnection } from './kubeconfig.ts';

const tlsFolder = fileURLToPath(new URL('../../test/fixtures/tls/', import.meta.url));
const pem = (name: string): string => readFileSync(join(tlsFolder, name), 'utf8');
const base64 = (name: string): string => Buffer.from(pem(name)).toString('base64');
const never = new AbortController().signal;

let folder: string;
let clock: ManualClock;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swy-kubeconfig-'));
  clock = new ManualClock();
});

afterEach(() => rm(folder, { recursive: true }));

/** GETs once over a connection; resolves with the body. */
async function get(connection: ApiServerConnection): Promise<string> {
  await using client = newApiClient(connection, { clock: systemClock, userAgent: 'test' });
  const request = { path: '/x', query: new URLSearchParams('a=b') };
  const read = async (body: { chunks(): AsyncIterable<Buffer> }): Promise<string> => {
    const chunks: Buffer[] = [];
    for await (const chunk of body.chunks()) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  };
  return await client.get(request, read, never);
}

const serverTls = {
  cert: pem('server.crt'),
  key: pem('server.key'),
  ca: pem('ca.crt'),
  requestCert: true,
  rejectUnauthorized: false,
};

/** A TLS server that answers with what it learned of the client. */
async function tlsServer(): Promise<ScriptedApiServer> {
  const server = await ScriptedApiServer.listen({ tls: serverTls });
  server.serve('/x', (exchange) => {
    const peer = (exchange.socket as TLSSocket).getPeerCertificate();
    exchange.answer(200, { client: peer.subject?.CN ?? null, authorization: exchange.headers.authorization ?? null });
  });
  return server;
}

interface KubeconfigParts {
  readonly server: URL | string;
  readonly cluster?: object;
  readonly user?: object | undefined;
}

async function kubeconfig({ server, cluster = {}, user = {} }: KubeconfigParts): Promise<string> {
  const path = join(folder, 'config');
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: String(server), ...cluster } }],
    users: [{ name: 'u', user }],
  };
  await writeFile(path, JSON.stringify(content));
  return path;
}

describe('kubeconfig', () => {
  test('CA and client certificate as data, and a token', async () => {
    await using server = await tlsServer();
    const path = await kubeconfig({
      server: server.url,
      cluster: { 'certificate-authority-data': base64('ca.crt') },
      user: { 'client-certificate-data': base64('client.crt'), 'client-key-data': base64('client.key'), token: 'abc' },
    });
    const answer = await get(await kubeconfigConnection(path, clock));
    expect(JSON.parse(answer)).toEqual({ client: 'test-client', authorization: 'Bearer abc' });
  });

  test('that is no file, but text, as read from a kind node', async () => {
    await using server = await tlsServer();
    const path = await kubeconfig({
      server: server.url,
      cluster: { 'certificate-authority-data': base64('ca.crt') },
      user: { 'client-certificate-data': base64('client.crt'), 'client-key-data': base64('client.key') },
    });
    const answer = await get(await kubeconfigTextConnection(readFileSync(path, 'utf8'), 'of cluster kind', clock));
    expect(JSON.parse(answer)).toMatchObject({ client: 'test-client' });
    await expect(kubeconfigTextConnection('{}', 'of cluster kind', clock)).rejects.toThrow(
      'kubeconfig of cluster kind: it has no current-context',
    );
    const withPlugin = await kubeconfig({ server: server.url, user: { exec: { command: 'x' } } });
    await expect(kubeconfigTextConnection(readFileSync(withPlugin, 'utf8'), 'of cluster kind', clock)).rejects.toThrow(
      /needs a program to be run/,
    );
  });

  test('files are relative to the kubeconfig; tls-server-name is checked instead of the host', async () => {
    await using server = await tlsServer();
    for (const name of ['ca.crt', 'client.crt', 'client.key']) await writeFile(join(folder, name), pem(name));
    const path = await kubeconfig({
      server: server.url,
      cluster: { 'certificate-authority': 'ca.crt', 'tls-server-name': 'api.test' },
      user: { 'client-certificate': 'client.crt', 'client-key': 'client.key' },
    });
    expect(JSON.parse(await get(await kubeconfigConnection(path, clock)))).toEqual({
      client: 'test-client',
      authorization: null,
    });
  });

  test.each([
    ['an unknown authority', {}, /self-signed certificate|unable to verify|unable to get local issuer/],
    [
      'another server name',
      { 'certificate-authority-data': base64('ca.crt'), 'tls-server-name': 'other.test' },
      /other\.test/,
    ],
  ])('%s is refused', async (_, cluster, message) => {
    await using server = await tlsServer();
    const connection = await kubeconfigConnection(await kubeconfig({ server: server.url, cluster }), clock);
    await expect(get(connection)).rejects.toThrow(message);
  });

  test('insecure-skip-tls-verify accepts any certificate', async () => {
    await using server = await tlsServer();
    const path = await kubeconfig({ server: server.url, cluster: { 'insecure-skip-tls-verify': true } });
    expect(JSON.parse(await get(await kubeconfigConnection(path, clock)))).toMatchObject({ client: null });
  });

  test('plain HTTP with a path prefix, user name and password', async () => {
    await using server = await ScriptedApiServer.listen();
    const path = await kubeconfig({
      server: `${server.url.origin}/prefix/`,
      user: { username: 'me', password: 'secret' },
    });
    const answer = get(await kubeconfigConnection(path, clock));
    const request = await server.next('/prefix/x');
    expect(request.headers.authorization).toBe(`Basic ${Buffer.from('me:secret').toString('base64')}`);
    request.answer(200, 'ok');
    expect(await answer).toBe('ok');
  });

  test('a token file, as kubeadm writes it for kube-proxy, is read again after 60 s', async () => {
    await writeFile(join(folder, 'token'), 'one\n');
    const connection = await kubeconfigConnection(
      await kubeconfig({ server: 'https://a', user: { tokenFile: 'token' } }),
      clock,
    );
    await writeFile(join(folder, 'token'), 'two\n');
    await clock.advance(seconds(59));
    expect(await connection.credentials.authorization(never)).toBe('Bearer one');
    await clock.advance(seconds(1));
    expect(await connection.credentials.authorization(never)).toBe('Bearer two');
  });

  test('a token that is replaced in the file is used after a 401', async () => {
    const path = await kubeconfig({ server: 'https://a', user: { token: 'one' } });
    const { credentials } = await kubeconfigConnection(path, clock);
    await kubeconfig({ server: 'https://a', user: { token: 'two' } });
    expect(await credentials.authorization(never)).toBe('Bearer one');
    credentials.forget();
    expect(await credentials.authorization(never)).toBe('Bearer two');
  });

  test('an exec plug-in gives the token', async () => {
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'from-plug-in' },
    };
    const exec = { apiVersion: credential.apiVersion, command: 'echo', args: [JSON.stringify(credential)] };
    const { credentials } = await kubeconfigConnection(
      await kubeconfig({ server: 'https://a', user: { exec } }),
      clock,
    );
    expect(await credentials.authorization(never)).toBe('Bearer from-plug-in');
  });

  test('a context without a user needs no credentials', async () => {
    await using server = await ScriptedApiServer.listen();
    const path = join(folder, 'config');
    const text = `current-context: x\ncontexts: [{ name: x, context: { cluster: c } }]\nclusters: [{ name: c, cluster: { server: "${server.url.origin}" } }]\n`;
    await writeFile(path, text);
    const answer = get(await kubeconfigConnection(path, clock));
    const request = await server.next('/x');
    expect(request.headers.authorization).toBeUndefined();
    request.answer(200, 'ok');
    expect(await answer).toBe('ok');
  });

  const apiVersion = 'client.authentication.k8s.io/v1';
  const credential = JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { token: 'there' } });
  test.each<[string, object]>([
    ['with a token', { token: 'there' }],
    ['with an exec plug-in', { exec: { apiVersion, command: 'echo', args: [credential] } }],
  ])('another context than the current one can be named, %s', async (_, user) => {
    const path = join(folder, 'config');
    const content = {
      'current-context': 'here',
      contexts: [{ name: 'there', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: 'https://there' } }],
      users: [{ name: 'u', user }],
    };
    await writeFile(path, JSON.stringify(content));
    const { url, credentials } = await kubeconfigConnection(path, clock, 'there');
    expect([url.host, await credentials.authorization(never)]).toEqual(['there', 'Bearer there']);
    const other = kubeconfigConnection(path, clock, 'nowhere');
    await expect(other).rejects.toThrow(`kubeconfig ${path}: the context "nowhere" is not among its contexts`);
    await expect(kubeconfigConnection(path, clock)).rejects.toThrow('its current-context "here" is not among');
  });

  const cluster = 'clusters: [{ name: c, cluster: { server: "https://a" } }]\n';
  const context = 'current-context: x\ncontexts: [{ name: x, context: { cluster: c, user: u } }]\n';
  test.each([
    ['broken YAML', 'a: [\n', /line 2, column 1: /],
    ['a list', '- a\n', /it is not one YAML object/],
    ['an empty file', '', /it is not one YAML object/],
    ['no current context', cluster, /it has no current-context/],
    ['an unknown context', 'current-context: y\n', /its current-context "y" is not among its contexts/],
    ['an unknown cluster', context, /context x names the cluster "c", which it does not have/],
    ['an unknown user', context + cluster, /context x names the user "u", which it does not have/],
    [
      'a cluster without a server',
      `${context}clusters: [{ name: c, cluster: {} }]\n`,
      /clusters\[0\]\.cluster\.server is missing/,
    ],
    [
      'a server that is no URL',
      `${context}clusters: [{ name: c, cluster: { server: "a:b:c" } }]\nusers: [{ name: u }]\n`,
      /server "a:b:c" is not an http or https URL/,
    ],
    [
      'a CA file that is not there',
      `${context}clusters: [{ name: c, cluster: { server: "https://a", certificate-authority: gone.crt } }]\nusers: [{ name: u }]\n`,
      /no such file or directory.*gone\.crt|gone\.crt/,
    ],
    [
      'a token file that is not there',
      `${context}${cluster}users: [{ name: u, user: { tokenFile: gone } }]\n`,
      /cannot read the token file .*gone: no such file or directory$/,
    ],
    [
      'a proxy',
      `${context}clusters: [{ name: c, cluster: { server: "https://a", proxy-url: "http://p" } }]\nusers: [{ name: u }]\n`,
      /proxy-url is not supported/,
    ],
    [
      'impersonation',
      `${context}${cluster}users: [{ name: u, user: { as: root } }]\n`,
      /impersonation \("as"\) is not supported/,
    ],
    [
      'an exec plug-in that is not there',
      `${context}${cluster}users: [{ name: u, user: { exec: { command: swy-no-such-plugin } } }]\n`,
      /swy-no-such-plugin/,
    ],
  ])('%s is one clear line', async (_, text, message) => {
    const path = join(folder, 'config');
    await writeFile(path, text);
    const error: unknown = await kubeconfigConnection(path, clock).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigError);
    const { message: line } = error as ConfigError;
    expect(line).toMatch(message);
    expect(line).not.toContain('\n');
    expect(line).toContain(folder);
  });

  test('a file that cannot be read is one clear line', async () => {
    const path = join(folder, 'nowhere');
    await expect(kubeconfigConnection(path, clock)).rejects.toThrow(
      `cannot read the kubeconfig ${path}: no such file or directory`,
    );
  });
});

describe('in cluster', () => {
  const env = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '6443' };

  test('address from the environment, CA and token from the mounted files', async () => {
    await using server = await tlsServer();
    await writeFile(join(folder, 'ca.crt'), pem('ca.crt'));
    await writeFile(join(folder, 'token'), 'pod-token\n');
    const connection = await inClusterConnection({
      env: { ...env, KUBERNETES_SERVICE_PORT: `${server.port}` },
      clock,
      folder,
    });
    expect(JSON.parse(await get(connection))).toEqual({ client: null, authorization: 'Bearer pod-token' });
  });

  test('an IPv6 address', async () => {
    for (const name of ['ca.crt', 'token']) await writeFile(join(folder, name), 'x');
    const connection = await inClusterConnection({
      env: { ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' },
      clock,
      folder,
    });
    expect(connection.url.href).toBe('https://[fd00::1]:6443/');
  });

  test('a rotated token is used after 60 s; while the file is away the last one stays', async () => {
    for (const name of ['ca.crt', 'token']) await writeFile(join(folder, name), 'one');
    const { credentials } = await inClusterConnection({ env, clock, folder });
    await rm(join(folder, 'token'));
    await clock.advance(seconds(60));
    expect(await credentials.authorization(never)).toBe('Bearer one');
    await writeFile(join(folder, 'token'), 'two');
    expect(await credentials.authorization(never)).toBe('Bearer one');
    await clock.advance(seconds(60));
    expect(await credentials.authorization(never)).toBe('Bearer two');
  });

  test('a 401 makes the token file be read at once', async () => {
    await using server = await ScriptedApiServer.listen();
    for (const name of ['ca.crt', 'token']) await writeFile(join(folder, name), 'one');
    const connection = { ...(await inClusterConnection({ env, clock, folder })), url: server.url };
    await writeFile(join(folder, 'token'), 'two');
    const refused = get(connection);
    (await server.next('/x')).answer(401, { message: 'Unauthorized' });
    await expect(refused).rejects.toThrow('answered 401: Unauthorized; check the credentials');
    const accepted = get(connection);
    const request = await server.next('/x');
    expect(request.headers.authorization).toBe('Bearer two');
    request.answer(200, 'ok');
    await accepted;
  });

  test.each([
    ['outside a pod', {}, ['ca.crt', 'token'], /not running in a pod: .*give --kubeconfig/],
    ['without a CA file', env, ['token'], /cannot read the service account CA .*ca\.crt: no such file or directory/],
    ['without a token file', env, ['ca.crt'], /cannot read the token file .*token: no such file or directory/],
  ])('%s it is one clear line', async (_, variables, files, message) => {
    for (const name of files) await writeFile(join(folder, name), 'x');
    const result = inClusterConnection({ env: variables, clock, folder });
    await expect(result).rejects.toThrow(ConfigError);
    await expect(result).rejects.toThrow(message);
  });

  test('an empty token file is refused', async () => {
    await writeFile(join(folder, 'ca.crt'), 'x');
    await writeFile(join(folder, 'token'), '\n');
    await expect(inClusterConnection({ env, clock, folder })).rejects.toThrow(/token file .* is empty/);
  });
});

test('a kept-alive connection that the server closed is tried once more, unseen', async () => {
  await using server = await ScriptedApiServer.listen();
  const connection = await kubeconfigConnection(await kubeconfig({ server: server.url }), clock);
  await using client = newApiClient(connection, { clock: systemClock, userAgent: 'test' });
  const ask = (): Promise<number> =>
    client.get(
      { path: '/x', query: new URLSearchParams() },
      async (body) => {
        let bytes = 0;
        for await (const chunk of body.chunks()) bytes += chunk.length;
        return bytes;
      },
      never,
    );
  const first = ask();
  (await server.next('/x')).answer(200, 'abc');
  expect(await first).toBe(3);
  const second = ask();
  (await server.next('/x')).reset();
  (await server.next('/x')).answer(200, 'abcd');
  expect(await second).toBe(4);
});

test('a body that is not read closes its connection', async () => {
  await using server = await ScriptedApiServer.listen();
  const connection = await kubeconfigConnection(await kubeconfig({ server: server.url }), clock);
  await using client = newApiClient(connection, { clock: systemClock, userAgent: 'test' });
  const answer = client.get({ path: '/x', query: new URLSearchParams() }, () => Promise.resolve('enough'), never);
  const request = await server.next('/x');
  request.stream();
  expect(await answer).toBe('enough');
  await request.closed;
});
