import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type Clock, millis, systemClock } from '@switchyard/core';
import { anonymousConnection, apiResources, type ObjectClient, type Pod } from '@switchyard/core/kubernetes';
import { type ApiServer, startApiServer } from '@switchyard/lab';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { apiOf } from './open-cluster-environment.ts';
import { type PodStarter, startPods } from './start-pods.ts';

const signal = AbortSignal.timeout(30_000);
const { events, pods } = apiResources;
const plan = { name: 'one', node: 'a', isOnHostNetwork: true };
let server: ApiServer;
let api: ObjectClient;
let program: Server;
let starter: PodStarter;
let told: string[];
/** Stand-in for the kubelet: called before each look, with the number of earlier looks. */
let onLook: (count: number) => Promise<void>;

beforeEach(async () => {
  // Where the API server finds pods: their program, as far as it matters here.
  program = createServer((_, response) => response.end('{"pod":"one"}'));
  await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve));
  const { port } = program.address() as AddressInfo;
  server = await startApiServer({ connect: () => Promise.resolve(connect(port, '127.0.0.1')) });
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  const connection = anonymousConnection(new URL(url));
  api = apiOf({ connection, clock: systemClock });
  told = [];
  let ports = 21_000;
  const settings = { run: 'r', namespace: 'default', image: 'img', command: undefined, tokenDigest: '' };
  starter = {
    caller: { api, namespace: 'default', token: 't' },
    settings,
    clock: leapingClock(),
    hostPort: () => ports++,
    onProgress: (text) => told.push(text),
  };
});

afterEach(async () => {
  await api[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  program.close();
});

/** Each look comes five seconds after the one before, at once. */
function leapingClock(): Clock {
  let time = 0;
  let looks = 0;
  return {
    now: () => millis(time),
    monotonic: () => millis(time),
    sleep: async () => {
      time += 5_000;
      await onLook(++looks);
    },
  };
}

const status = (change: Pod['status']): Promise<unknown> =>
  api.patch(pods, { name: 'one', subresource: 'status' }, { kind: 'merge', body: { status: change } }, signal);
const waiting = (reason: string, message: string): Pod['status'] => ({
  containerStatuses: [
    { name: 'traffic', image: '', imageID: '', ready: false, restartCount: 0, state: { waiting: { reason, message } } },
  ],
});
const ended = (exitCode: number): Pod['status'] => ({
  phase: 'Failed',
  containerStatuses: [
    {
      name: 'traffic',
      image: '',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: { terminated: { exitCode, reason: 'Error' } },
    },
  ],
});
const running: Pod['status'] = {
  phase: 'Running',
  podIP: '192.0.2.1',
  podIPs: [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }],
};

test('while a pod does not start each reason is reported once, and at last it runs', async () => {
  const involvedObject = { kind: 'Pod', namespace: 'default', name: 'one' };
  const event = {
    metadata: { name: 'e', namespace: 'default' },
    involvedObject,
    type: 'Normal',
    message: 'Pulling image "img"',
  };
  onLook = async (count) => {
    if (count === 1) await status(waiting('ContainerCreating', ''));
    if (count === 2) await api.create(events, event, signal);
    if (count === 4) await status(waiting('ErrImagePull', 'not found'));
    if (count === 5) await status(running);
  };
  const [pod] = await startPods(starter, [plan], signal);
  expect(told.map((text) => text.replace('waiting for pod one on a: ', ''))).toEqual([
    'ContainerCreating',
    'ContainerCreating; Pulling image "img"',
    'ErrImagePull: not found',
  ]);
  expect(pod).toMatchObject({ name: 'one', port: 21_000, addresses: { IPv4: '192.0.2.1', IPv6: '2001:db8::1' } });
});

test('a taken port of the host is reported, and the next one is tried', async () => {
  onLook = async (count) => {
    if (count === 1) await status(ended(98));
    if (count === 2) await status(running);
  };
  const [pod] = await startPods(starter, [plan], signal);
  expect(told).toContain('port 21000 of node a is taken; trying another one');
  expect(pod?.port).toBe(21_001);
  expect((await api.get(pods, { name: 'one' }, signal)).spec?.containers[0]?.args).toContain('21001');
});

test.each<[string, Pod['status'], RegExp]>([
  [
    'will never start',
    waiting('InvalidImageName', 'bad'),
    /pod one does not start on node a: InvalidImageName: bad; is the image there/,
  ],
  ['has ended', ended(3), /pod one on node a has ended: Error/],
])('a pod that %s ends the wait', async (_, change, message) => {
  onLook = async () => void (await status(change));
  await expect(startPods(starter, [plan], signal)).rejects.toThrow(message);
});

test('a pod that is pending for ever is given up after five minutes', async () => {
  onLook = async () => undefined;
  await expect(startPods(starter, [plan], signal)).rejects.toThrow(
    /its node has not said anything yet; is the image there/,
  );
  expect(starter.clock.monotonic()).toBeGreaterThan(300_000);
});

test('a new namespace that has no service account yet is waited for', async () => {
  const refused = server.faults.inject(
    { kind: 'status', status: 403, body: 'pods "one" is forbidden: error looking up service account default/default' },
    { times: 2, method: 'POST', target: /\/pods$/ },
  );
  onLook = async (count) => void (count >= 3 && (await status(running)));
  expect((await startPods(starter, [plan], signal)).map(({ name }) => name)).toEqual(['one']);
  refused[Symbol.dispose]();
});
