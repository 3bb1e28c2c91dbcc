import { describe, expect, test } from 'vitest';
import { startHarness, type Wire } from './harness.ts';

const onNode: Wire = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'node1.1' },
  eventTime: '2026-11-21T10:00:00.000000Z',
  reportingController: 'kube-proxy',
  reportingInstance: 'kube-proxy-node1',
  action: 'StartKubeProxy',
  reason: 'Starting',
  regarding: { kind: 'Node', name: 'node1', uid: 'node1' },
  note: 'hello',
  type: 'Normal',
};
const newPath = '/apis/events.k8s.io/v1/namespaces/default/events';
const corePath = '/api/v1/namespaces/default/events';

describe('the two groups of Events', () => {
  test('have the same objects, each in its own words, under one version', async () => {
    await using api = await startHarness();
    const made = await api.send('POST', newPath, onNode);
    expect(made.status).toBe(201);
    const core = await api.get(`${corePath}/node1.1`);
    expect(core.body).toMatchObject({
      kind: 'Event',
      apiVersion: 'v1',
      metadata: { uid: made.body.metadata.uid, resourceVersion: made.body.metadata.resourceVersion },
      involvedObject: onNode.regarding,
      message: 'hello',
      reportingComponent: 'kube-proxy',
      reportingInstance: 'kube-proxy-node1',
    });
    expect(core.body).not.toHaveProperty('regarding');
    const patched = await api.patch(`${newPath}/node1.1`, 'merge', {
      series: { count: 2, lastObservedTime: '2026-11-21T10:01:00.000000Z' },
    });
    expect(patched.body).toMatchObject({ regarding: onNode.regarding, note: 'hello', series: { count: 2 } });
    const listed = await api.get(`${corePath}?fieldSelector=involvedObject.name%3Dnode1,involvedObject.uid%3Dnode1`);
    expect(listed.body.items).toMatchObject([{ message: 'hello', series: { count: 2 } }]);
    expect((await api.get(newPath)).body.items).toHaveLength(1);
  });

  test('an event of the old group is seen in the new one, and gone from both when deleted', async () => {
    await using api = await startHarness();
    const old = {
      metadata: { name: 'old' },
      involvedObject: { kind: 'Node', name: 'node1' },
      message: 'before',
      source: { component: 'kubelet' },
      count: 3,
    };
    expect((await api.send('POST', corePath, old)).status).toBe(201);
    expect((await api.get(`${newPath}/old`)).body).toMatchObject({
      note: 'before',
      deprecatedSource: { component: 'kubelet' },
      deprecatedCount: 3,
    });
    expect((await api.send('DELETE', `${newPath}/old`)).status).toBe(200);
    expect((await api.get(`${corePath}/old`)).status).toBe(404);
  });
});

test.each<[string, Wire, string]>([
  ['without a time', { eventTime: undefined }, 'eventTime'],
  ['without an action', { action: '' }, 'action'],
  ['without an instance', { reportingInstance: undefined }, 'reportingInstance'],
  ['with too long a note', { note: 'x'.repeat(1025) }, 'note'],
  ['of another type', { type: 'Info' }, 'type'],
  ['with a count of the old kind', { deprecatedCount: 2 }, 'deprecatedCount'],
  [
    'about something in another namespace',
    { regarding: { kind: 'Service', namespace: 'x', name: 'y' } },
    'regarding.namespace',
  ],
])('the new group refuses an event %s', async (_, change, field) => {
  await using api = await startHarness();
  const reply = await api.send('POST', newPath, { ...onNode, ...change });
  expect(reply.status).toBe(422);
  expect(reply.body.details.causes.map((cause: Wire) => cause.field)).toEqual([field]);
});
