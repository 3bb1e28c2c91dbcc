import { createServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ConnectTarget } from '../../../src/apiserver/namespace-sockets.ts';
import { type Harness, startHarness } from './harness.ts';

/** Last request to the pod. */
let asked: {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};
const dialled: ConnectTarget[] = [];
const program = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { method = '', url = '', headers } = request;
    asked = { method, url, headers, body: Buffer.concat(chunks).toString() };
    response.writeHead(url.startsWith('/teapot') ? 418 : 200, { 'x-pod': 'web' }).end(`${method} ${url}`);
  });
});
const pods = '/api/v1/namespaces/default/pods';
let api: Harness;

beforeAll(async () => {
  await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve));
  const { port } = program.address() as AddressInfo;
  api = await startHarness({
    connect: async (target) => {
      dialled.push(target);
      if (target.port === 81) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
      const socket = connect(port, '127.0.0.1');
      await new Promise((resolve) => socket.once('connect', resolve));
      return socket;
    },
  });
  const container = { name: 'c', image: 'x', ports: [{ containerPort: 8080 }] };
  for (const [name, podIP] of Object.entries({
    web: '10.244.1.5',
    v6: 'fd00:10:244:1::5',
    new: '',
    host: '127.0.0.1',
  })) {
    await api.send('POST', pods, { metadata: { name }, spec: { containers: [container] } });
    await api.patch(`${pods}/${name}/status`, 'merge', { status: { podIP } });
  }
});

afterAll(async () => {
  await api[Symbol.asyncDispose]();
  program.close();
});

test('a request is passed on with its body and what remains of its path, without credentials', async () => {
  const headers = { authorization: 'Bearer secret', 'x-own': 'kept' };
  const reply = await api.send('POST', `${pods}/web:9000/proxy/a%20b/c?d=e&f`, { hello: 1 }, headers);
  expect([reply.status, reply.text, reply.headers['x-pod']]).toEqual([200, 'POST /a%20b/c?d=e&f', 'web']);
  expect(asked.body).toBe('{"hello":1}');
  expect(asked.headers).toMatchObject({ host: '10.244.1.5:9000', 'x-own': 'kept' });
  expect(asked.headers).not.toHaveProperty('authorization');
  expect(dialled.at(-1)).toEqual({ host: '10.244.1.5', port: 9000 });
});

test.each([
  ['without a port, to the first one of the pod', 'web/proxy/', { host: '10.244.1.5', port: 8080 }],
  ['with a scheme', 'http:web:82/proxy/', { host: '10.244.1.5', port: 82 }],
  ['over IPv6', 'v6:83/proxy/', { host: 'fd00:10:244:1::5', port: 83 }],
])('a request goes %s', async (_, path, expected) => {
  expect((await api.get(`${pods}/${path}`)).text).toBe('GET /');
  expect(dialled.at(-1)).toEqual(expected);
});

test("the pod's own status is the answer's", async () => {
  expect((await api.send('DELETE', `${pods}/web/proxy/teapot`)).status).toBe(418);
});

test('without a slash the client is sent to the path with one', async () => {
  const reply = await api.get(`${pods}/web/proxy?a=b`);
  expect([reply.status, reply.headers.location]).toEqual([301, `${pods}/web/proxy/?a=b`]);
});

test.each([
  ['a pod that is not there', 'none/proxy/', 404, 'NotFound', 'pods "none" not found'],
  ['too many colons', 'a:b:c:d/proxy/', 400, 'BadRequest', 'invalid pod request "a:b:c:d"'],
  ['a scheme that is none', 'ftp:web:80/proxy/', 400, 'BadRequest', 'invalid pod request "ftp:web:80"'],
  ['a pod without an address', 'new/proxy/', 400, 'BadRequest', 'address not allowed'],
  ['a loopback address', 'host/proxy/', 400, 'BadRequest', 'address not allowed'],
  [
    'a port without a listener',
    'web:81/proxy/',
    503,
    'ServiceUnavailable',
    'error trying to reach service: dial tcp 10.244.1.5:81: connect: connection refused',
  ],
])('%s is refused', async (_, path, status, reason, message) => {
  const reply = await api.get(`${pods}/${path}`);
  expect(reply.status).toBe(status);
  expect(reply.body).toMatchObject({ kind: 'Status', status: 'Failure', reason, message, code: status });
});

test('who may read pods may not talk to them: pods/proxy is a right of its own, by method', async () => {
  const rule = { verbs: ['get'], apiGroups: [''], resources: ['pods', 'pods/proxy'] };
  using _user = api.server.access.addUser({ name: 'alice', token: 't', rules: [rule] });
  const headers = { authorization: 'Bearer t' };
  expect((await api.get(`${pods}/web:9000/proxy/x/y`, headers)).status).toBe(200);
  const refused = await api.send('POST', `${pods}/web:9000/proxy/x`, {}, headers);
  expect(refused.status).toBe(403);
  expect(refused.body.message).toBe(
    'pods "web:9000" is forbidden: User "alice" cannot create resource "pods/proxy" in API group "" in the namespace "default"',
  );
});
