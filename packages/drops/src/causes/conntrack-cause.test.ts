import { lenientTraits } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { type DropSpec, place, placedDrop, podNetns, tcp, tracked } from '../testing/placed-drop.ts';
import { nodeView } from '../testing/shop.ts';
import type { CauseCode } from './causes.ts';
import type { NodeView } from './drop-subject.ts';
import { explainDrop } from './explain-drop.ts';

const causeOf = (spec: DropSpec, view: Partial<NodeView> = {}) => explainDrop(placedDrop(spec), nodeView(view))?.cause;
const toCart = tracked('10.96.0.10:80', '10.244.1.5:8080');

describe('a new flow that connection tracking did not enter', () => {
  const conntrack = { full: 1, clashes: 1 }; // the kernel counts a clash as both
  const clash: DropSpec = {
    place: place('hook', 'postrouting'),
    flow: { ...toCart, isConfirmed: false, isAnswered: false },
  };

  test.each<readonly [string, DropSpec, CauseCode]>([
    ['a forwarded one', {}, 'conntrackClash'],
    ['one to a socket of the node', { place: place('hook', 'input') }, 'conntrackClash'],
    ['at an unknown hook', { place: place('hook') }, 'conntrackClash'],
    [
      'one that the kernel marked before (Linux 6.15)',
      { flow: { ...toCart, isConfirmed: true, isAnswered: false } },
      'conntrackClash',
    ],
    ['at a hook where none is entered', { place: place('hook', 'forward') }, 'otherRule'],
    ['one that a rule dropped', { place: place('rule', 'postrouting') }, 'otherRule'],
    ['an answered one', { flow: toCart }, 'otherRule'],
    ['one in a pod', { netns: podNetns }, 'otherRule'],
  ])('%s', (_, spec, cause) => {
    expect(causeOf({ ...clash, ...spec }, { conntrack })).toBe(cause);
  });

  test('is not of another flow that clashed before', () => {
    expect(causeOf(clash, { conntrack: { full: 0, clashes: 0 } })).toBe('otherRule');
  });
});

describe('a segment that was not translated', () => {
  const segment: DropSpec = { tcpFlags: tcp.ack | tcp.data };
  const noRoute: DropSpec = { reason: 'IP_INNOROUTES', place: place('kernel', 'prerouting') };
  const noSocket: DropSpec = { reason: 'NO_SOCKET', place: place('tcp', 'input'), to: '192.0.2.1:30080' };

  test.each<readonly [string, DropSpec, CauseCode]>([
    ['and has no route', noRoute, 'invalidSegment'],
    ['and has no route of IPv6', { reason: 'NOT_SPECIFIED', place: place('route') }, 'invalidSegment'],
    ['and has no socket at a NodePort', noSocket, 'invalidSegment'],
    ['but dropped before, in a pod', { ...noSocket, netns: podNetns }, 'applicationGone'],
    ['of a flow', { ...noRoute, flow: tracked('10.96.0.10:80', '10.96.0.10:80') }, 'noRoute'],
    ['but was the first', { ...noRoute, tcpFlags: tcp.syn }, 'noRoute'],
    ['because it was sent to the endpoint itself', { ...noRoute, to: '10.244.1.5:8080' }, 'noRoute'],
    ['to an address without a Service', { ...noRoute, to: '10.96.9.9:80' }, 'noRoute'],
    ['from the wrong side', { ...noRoute, reason: 'IP_RPFILTER' }, 'reversePath'],
  ])('%s', (_, spec, cause) => {
    expect(causeOf({ ...segment, ...spec }, { traits: lenientTraits })).toBe(cause);
  });

  test('and ends its connection is no loss at a NodePort', () => {
    expect(causeOf({ ...noSocket, tcpFlags: tcp.fin | tcp.ack })).toBeUndefined();
  });
});
