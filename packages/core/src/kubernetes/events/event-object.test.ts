import { describe, expect, test } from 'vitest';
import type { RecordedEvent } from '../../base/log.ts';
import { millis } from '../../base/time.ts';
import { eventName, eventObject, type EventSeries, seriesKey, seriesPatch } from './event-object.ts';

const reporter = { controller: 'kube-proxy', instance: 'kube-proxy-n1' };
const onNode: RecordedEvent = {
  type: 'Normal',
  reason: 'Starting',
  action: 'StartKubeProxy',
  regarding: { kind: 'Node', namespace: '', name: 'n1', uid: '' },
  note: '',
};
const onService: RecordedEvent = {
  type: 'Warning',
  reason: 'FailedToStartServiceHealthcheck',
  action: 'Listen',
  regarding: { kind: 'Service', namespace: 'shop', name: 'cart', uid: '' },
  note: 'port taken',
};
const time = millis(Date.parse('2026-11-21T10:00:00.125Z'));
const series = (event: RecordedEvent, count = 1): EventSeries => ({
  event,
  name: 'n1.1',
  first: time,
  last: millis(time + 1000),
  count,
});

test('an event about a Node is in the namespace default, and its uid is the name, as kubectl describe looks for it', () => {
  expect(eventObject(series(onNode), reporter, '')).toEqual({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: 'n1.1', namespace: 'default' },
    eventTime: '2026-11-21T10:00:00.125000Z',
    reportingController: 'kube-proxy',
    reportingInstance: 'kube-proxy-n1',
    action: 'StartKubeProxy',
    reason: 'Starting',
    regarding: { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' },
    note: '',
    type: 'Normal',
  });
});

test('an event about a Service is in its namespace, with the uid that was found', () => {
  const object = eventObject(series(onService), reporter, 'abc');
  expect(object).toMatchObject({
    metadata: { namespace: 'shop' },
    regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'cart', uid: 'abc' },
    note: 'port taken',
    type: 'Warning',
  });
  expect(eventObject(series(onService), reporter, '')).not.toHaveProperty('regarding.uid');
});

test('repetitions before the first delivery are in the object, later ones in a patch', () => {
  const repeated = { series: { count: 3, lastObservedTime: '2026-11-21T10:00:01.125000Z' } };
  expect(eventObject(series(onNode, 3), reporter, '')).toMatchObject(repeated);
  expect(eventObject(series(onNode, 1), reporter, '')).not.toHaveProperty('series');
  expect(seriesPatch(series(onNode, 3))).toEqual(repeated);
});

describe('limits', () => {
  test.each([
    ['a short note stays', 'x', 'x'],
    ['1024 bytes stay', 'x'.repeat(1024), 'x'.repeat(1024)],
    ['a long one ends in dots', 'x'.repeat(1025), `${'x'.repeat(1018)}...`],
    ['no character is cut in two', 'ä'.repeat(1000), `${'ä'.repeat(509)}...`],
    ['nor one of four bytes', `x${'😀'.repeat(400)}`, `x${'😀'.repeat(254)}...`],
  ])('%s', (_, note, expected) => {
    const object = eventObject(series({ ...onNode, note }), reporter, '') as { readonly note: string };
    expect(object.note).toBe(expected);
    expect(Buffer.byteLength(object.note)).toBeLessThanOrEqual(1024);
  });

  test('names and instances of Nodes with long names are not too long', () => {
    const long = `n${'.1234567'.repeat(31)}`;
    const event = { ...onNode, regarding: { ...onNode.regarding, name: long } };
    expect(eventName(event, time, 0).length).toBeLessThanOrEqual(253);
    const instance = `kube-proxy-${long}`;
    const object = eventObject(series(event), { ...reporter, instance }, '') as { readonly reportingInstance: string };
    expect(object.reportingInstance).toHaveLength(128);
  });
});

test('events in one millisecond have names of their own', () => {
  expect(eventName(onNode, time, 1)).toMatch(/^n1\.[0-9a-f]{16}$/);
  expect(eventName(onNode, time, 1)).not.toBe(eventName(onNode, time, 2));
});

test('the note does not make another event of it; what it is about does', () => {
  const key = (event: RecordedEvent): string => seriesKey(event, 'ignored');
  expect(key({ ...onNode, note: 'x' })).toBe(key(onNode));
  expect(key({ ...onService, regarding: { ...onService.regarding, namespace: 'other' } })).not.toBe(key(onService));
});

test('another note is another event where notes are distinct', () => {
  expect(seriesKey({ ...onNode, note: 'x' }, 'distinct')).not.toBe(seriesKey(onNode, 'distinct'));
  expect(seriesKey({ ...onNode, note: 'x' }, 'distinct')).toBe(seriesKey({ ...onNode, note: 'x' }, 'distinct'));
});
