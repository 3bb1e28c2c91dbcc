import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { services, startHarness, summary, type Wire } from './harness.ts';

// The statements 19 to 39 of the recorded facts about kube-apiserver 1.36, as far as the server (and not a controller) makes them true.

test('fact 19: HTTP/1.1 keep-alive and pipelining', async () => {
  await using api = await startHarness();
  const { hostname, port } = new URL(api.url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await new Promise((resolve) => socket.once('close', resolve));
  expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
  expect(text.match(/\r\n\r\nok/g)).toHaveLength(2);
});

test('fact 20: a 429 is text with Retry-After, and is over when it was used up', async () => {
  await using api = await startHarness();
  api.server.faults.inject({ kind: 'status', status: 429, retryAfter: 1 }, { times: 1, method: 'GET' });
  const refused = await api.get(services);
  expect(refused.status).toBe(429);
  expect(refused.headers).toMatchObject({ 'retry-after': '1', 'content-type': 'text/plain; charset=utf-8' });
  expect((await api.get(services)).status).toBe(200);
});

describe('kube-proxy 1.36', () => {
  test('fact 21: its field and label selectors leave out headless Services and foreign proxies', async () => {
    await using api = await startHarness();
    await api.service('web');
    await api.service('headless', { spec: { clusterIP: 'None' } });
    await api.service('foreign', { metadata: { labels: { 'service.kubernetes.io/service-proxy-name': 'other' } } });
    await api.send('POST', services, {
      metadata: { name: 'alias' },
      spec: { type: 'ExternalName', externalName: 'x.example.com' },
    });
    const query = 'labelSelector=%21service.kubernetes.io%2Fservice-proxy-name&fieldSelector=spec.clusterIP%21%3DNone';
    const { body } = await api.get(`/api/v1/services?${query}`);
    expect(body.items.map((item: Wire) => item.metadata.name)).toEqual(['alias', 'web']);
  });

  test('fact 22: it starts with list limit=500&resourceVersion=0, then watches from there', async () => {
    await using api = await startHarness();
    await api.service('web');
    const list = await api.get('/api/v1/services?limit=500&resourceVersion=0');
    const { resourceVersion } = list.body.metadata;
    const watch = await api.watch(
      `/api/v1/services?allowWatchBookmarks=true&resourceVersion=${resourceVersion}&timeout=6m3s&timeoutSeconds=363&watch=true`,
    );
    await api.service('next');
    await watch.until(1);
    expect(summary(watch.events)).toEqual(['ADDED next']);
    watch.close();
  });
});

test('fact 23: discovery revalidates with an ETag and falls back to the legacy documents', async () => {
  await using api = await startHarness();
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
  const first = await api.get('/apis', { accept });
  expect(first.headers['content-type']).toBe('application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList');
  const again = await api.get('/apis', { accept, 'if-none-match': String(first.headers.etag) });
  expect(again.status).toBe(304);
  expect((await api.get('/apis')).body).toMatchObject({ kind: 'APIGroupList', apiVersion: 'v1' });
  expect((await api.get('/version')).body).toMatchObject({ major: '1', minor: '36', gitVersion: 'v1.36.2' });
});

test('fact 24: the OpenAPI v3 index is JSON under text/plain, revalidates, and leads to each group', async () => {
  await using api = await startHarness();
  const index = await api.get('/openapi/v3');
  expect(index.headers['content-type']).toBe('text/plain; charset=utf-8');
  const modified = String(index.headers['last-modified']);
  expect((await api.get('/openapi/v3', { 'if-modified-since': modified })).status).toBe(304);
  const { serverRelativeURL } = index.body.paths['apis/apps/v1'];
  const document = await api.get(serverRelativeURL);
  const patch = document.body.paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}'].patch;
  expect(patch.parameters.map((parameter: Wire) => parameter.name)).toContain('fieldValidation');
});

test('fact 27: patching to the same state answers 200 with the same version', async () => {
  await using api = await startHarness();
  const web = await api.service('web', { metadata: { labels: { a: 'b' } } });
  const bodies = [
    await api.patch(`${services}/web`, 'merge', { metadata: { labels: { a: 'b' } } }),
    await api.patch(`${services}/web`, 'strategic', { spec: { ports: [{ port: 80, protocol: 'TCP' }] } }),
    await api.patch(`${services}/web`, 'json', [{ op: 'replace', path: '/spec/type', value: 'ClusterIP' }]),
  ];
  for (const { status, body } of bodies) {
    expect([status, body.metadata.resourceVersion]).toEqual([200, web.metadata.resourceVersion]);
  }
});

describe('fact 29: Service status', () => {
  const status = (api: Wire, body: unknown): Promise<Wire> =>
    api.patch(`${services}/lb/status`, 'merge', { status: body });

  test('PATCH on the object ignores status, PATCH on /status ignores spec', async () => {
    await using api = await startHarness();
    await api.service('lb', { spec: { type: 'LoadBalancer' } });
    const ingress = { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } };
    const main = await api.patch(`${services}/lb`, 'merge', { ...ingress, metadata: { labels: { x: 'y' } } });
    expect(main.body.status).toEqual({ loadBalancer: {} });
    const sub = await api.patch(`${services}/lb/status`, 'merge', {
      ...ingress,
      spec: { sessionAffinity: 'ClientIP' },
    });
    expect(sub.body.spec.sessionAffinity).toBe('None');
    expect(sub.body.status.loadBalancer.ingress).toEqual([{ ip: '192.0.2.1', ipMode: 'VIP' }]);
  });

  test('{} for loadBalancer changes nothing, ingress null clears, leaving the type drops it but not conditions', async () => {
    await using api = await startHarness();
    await api.service('lb', { spec: { type: 'LoadBalancer' } });
    const condition = {
      type: 'Ready',
      status: 'True',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      reason: 'x',
      message: '',
    };
    await status(api, { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] }, conditions: [condition] });
    expect((await status(api, { loadBalancer: {} })).body.status.loadBalancer.ingress).toHaveLength(1);
    expect((await status(api, { loadBalancer: { ingress: null } })).body.status.loadBalancer).toEqual({});
    await status(api, { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } });
    const plain = await api.patch(`${services}/lb`, 'merge', { spec: { type: 'ClusterIP' } });
    expect(plain.body.status.loadBalancer).toEqual({});
    expect(plain.body.status.conditions).toHaveLength(1);
  });
});

describe('fact 30: DELETE', () => {
  const pods = '/api/v1/namespaces/default/pods';
  const pod = { metadata: { name: 'p' }, spec: { nodeName: 'node1', containers: [{ name: 'c', image: 'x' }] } };

  test('a bound pod waits for its grace period; a second DELETE with grace 0 is MODIFIED and DELETED (fact 33)', async () => {
    await using api = await startHarness();
    const { resourceVersion } = (await api.send('POST', pods, pod)).body.metadata;
    const watch = await api.watch(`${pods}?watch=true&resourceVersion=${resourceVersion}`);
    const before = Date.now();
    const { metadata } = (await api.send('DELETE', `${pods}/p`, { propagationPolicy: 'Background' })).body;
    expect(metadata.deletionGracePeriodSeconds).toBe(30);
    expect(Math.abs(Date.parse(metadata.deletionTimestamp) - before - 30_000)).toBeLessThan(2_000);
    expect(metadata.generation).toBe(2);
    const force = await api.send('DELETE', `${pods}/p`, { gracePeriodSeconds: 0 });
    expect(force.body.metadata).toMatchObject({ deletionGracePeriodSeconds: 0, generation: 2 });
    await watch.until(3);
    watch.close();
    expect(summary(watch.events)).toEqual(['MODIFIED p', 'MODIFIED p', 'DELETED p']);
    expect((await api.get(`${pods}/p`)).status).toBe(404);
  });

  test('a grace period can only be shortened, and a pod without a node goes at once', async () => {
    await using api = await startHarness();
    await api.send('POST', pods, pod);
    await api.send('DELETE', `${pods}/p`, { gracePeriodSeconds: 5 });
    const longer = await api.send('DELETE', `${pods}/p`, { gracePeriodSeconds: 60 });
    expect(longer.body.metadata.deletionGracePeriodSeconds).toBe(5);
    await api.send('POST', pods, { metadata: { name: 'q' }, spec: { containers: pod.spec.containers } });
    await api.send('DELETE', `${pods}/q`);
    expect((await api.get(`${pods}/q`)).status).toBe(404);
  });

  test('deleting a namespace deletes its contents, waits for pods, and refuses new objects', async () => {
    await using api = await startHarness();
    await api.send('POST', '/api/v1/namespaces', { metadata: { name: 'team' } });
    await api.send('POST', '/api/v1/namespaces/team/services', {
      metadata: { name: 's' },
      spec: { ports: [{ port: 1 }] },
    });
    await api.send('POST', '/api/v1/namespaces/team/pods', pod);
    const reply = await api.send('DELETE', '/api/v1/namespaces/team');
    expect(reply.body).toMatchObject({ kind: 'Namespace', status: { phase: 'Terminating' } });
    await sleep(20);
    expect((await api.get('/api/v1/namespaces/team/services')).body.items).toEqual([]);
    const refused = await api.send('POST', '/api/v1/namespaces/team/pods', { ...pod, metadata: { name: 'late' } });
    expect(refused.status).toBe(403);
    expect((await api.get('/api/v1/namespaces/team')).status).toBe(200);
    await api.send('DELETE', '/api/v1/namespaces/team/pods/p', { gracePeriodSeconds: 0 });
    await sleep(20);
    expect((await api.get('/api/v1/namespaces/team')).status).toBe(404);
  });
});

describe('dependents of deleted owners', () => {
  const deployments = '/apis/apps/v1/namespaces/default/deployments';
  const template = { metadata: { labels: { app: 'd' } }, spec: { containers: [{ name: 'c', image: 'x' }] } };
  const spec = { selector: { matchLabels: { app: 'd' } }, template };

  async function ownerWithPod(api: Wire): Promise<void> {
    const owner = (await api.send('POST', deployments, { metadata: { name: 'd' }, spec })).body;
    const reference = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: 'd',
      uid: owner.metadata.uid,
      controller: true,
    };
    const metadata = { name: 'd-1', labels: { app: 'd' }, ownerReferences: [reference] };
    await api.send('POST', '/api/v1/namespaces/default/pods', { metadata, spec: { ...template.spec, nodeName: 'n' } });
  }

  test.each([
    ['Background', 404, 'Terminating'],
    ['Orphan', 404, 'kept'],
    ['Foreground', 200, 'Terminating'],
  ])('%s: the owner answers %i soon after, the pod is %s', async (propagationPolicy, status, podState) => {
    await using api = await startHarness();
    await ownerWithPod(api);
    const reply = await api.send('DELETE', `${deployments}/d`, { propagationPolicy });
    expect(reply.body.kind).toBe(propagationPolicy === 'Background' ? 'Status' : 'Deployment');
    await sleep(30);
    expect((await api.get(`${deployments}/d`)).status).toBe(status);
    const { metadata } = (await api.get('/api/v1/namespaces/default/pods/d-1')).body;
    expect(metadata.deletionTimestamp === undefined ? 'kept' : 'Terminating').toBe(podState);
    expect(metadata.ownerReferences === undefined).toBe(propagationPolicy === 'Orphan');
    await api.send('DELETE', '/api/v1/namespaces/default/pods/d-1', { gracePeriodSeconds: 0 });
    await sleep(30);
    expect((await api.get(`${deployments}/d`)).status).toBe(404);
  });
});

describe('Deployments (facts 31, 37)', () => {
  const deployments = '/apis/apps/v1/namespaces/default/deployments';
  const template = { metadata: { labels: { app: 'd' } }, spec: { containers: [{ name: 'c', image: 'x' }] } };

  test('a template change raises the generation, a status write does not', async () => {
    await using api = await startHarness();
    const spec = { selector: { matchLabels: { app: 'd' } }, template };
    const created = (await api.send('POST', deployments, { metadata: { name: 'd' }, spec })).body;
    expect(created.spec).toMatchObject({
      replicas: 1,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
    });
    const annotations = { 'kubectl.kubernetes.io/restartedAt': '2026-11-21T01:59:01Z' };
    const restarted = await api.patch(`${deployments}/d`, 'strategic', {
      spec: { template: { metadata: { annotations } } },
    });
    const observed = await api.patch(`${deployments}/d/status`, 'merge', {
      status: { observedGeneration: 2, replicas: 1, terminatingReplicas: 0 },
    });
    const labelled = await api.patch(`${deployments}/d`, 'merge', { metadata: { labels: { x: 'y' } } });
    expect([created, restarted.body, observed.body, labelled.body].map((d) => d.metadata.generation)).toEqual([
      1, 2, 2, 2,
    ]);
    expect(observed.body.status).toEqual({ observedGeneration: 2, replicas: 1, terminatingReplicas: 0 });
  });
});

describe('EndpointSlices (facts 35, 36)', () => {
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';

  test('a slice without endpoints has explicit nulls; missing conditions are {}', async () => {
    await using api = await startHarness();
    const empty = await api.send('POST', slices, { metadata: { name: 'e' }, addressType: 'IPv4', endpoints: [] });
    expect(empty.body).toMatchObject({ endpoints: null, ports: null, metadata: { generation: 1 } });
    const endpoints = [{ addresses: ['10.0.0.1'] }];
    const full = await api.send('POST', slices, {
      metadata: { name: 'f' },
      addressType: 'IPv4',
      endpoints,
      ports: [{ port: 1 }],
    });
    expect(full.body.endpoints).toEqual([{ addresses: ['10.0.0.1'], conditions: {} }]);
    expect(full.body.ports).toEqual([{ name: '', protocol: 'TCP', port: 1 }]);
  });
});

test('fact 39: a killed server ends a watch without the terminating chunk, and refuses connections', async () => {
  await using api = await startHarness();
  const watch = await api.watch(`${services}?watch=true`);
  api.server.faults.endWatches('reset');
  expect(await watch.ended).toBe('cut');
  const stopped = api.server.faults.stop();
  await expect(api.get(services)).rejects.toThrow(/socket hang up|ECONNRESET/);
  stopped[Symbol.dispose]();
  expect((await api.get(services)).status).toBe(200);
});
