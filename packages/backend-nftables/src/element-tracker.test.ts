import { serviceKey, servicePortKey } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { ElementTracker, orderChanges } from './element-tracker.ts';
import type { Change, Element } from './elements.ts';
import { printChanges } from './nft-cli/print.ts';

const a = servicePortKey(serviceKey('shop', 'a'), '', 'TCP');
const b = servicePortKey(serviceKey('shop', 'b'), '', 'TCP');
const element = (id: string, data = ''): Element => ({ id, data });
const pendingOf = (tracker: ElementTracker): readonly Change[] => orderChanges([...tracker.pending().values()].flat());
const applyAll = (tracker: ElementTracker): readonly Change[] => {
  const changes = pendingOf(tracker);
  tracker.markApplied(changes);
  return changes;
};

describe('ElementTracker', () => {
  test('wants what was claimed, once', () => {
    const tracker = new ElementTracker();
    tracker.claim(new Map([[a, [element('frontends4 x', '0x1')]]]));
    expect(applyAll(tracker)).toEqual([{ kind: 'add', id: 'frontends4 x', data: '0x1' }]);
    expect(pendingOf(tracker)).toEqual([]);
  });

  test('a changed value is a delete and an add of one key', () => {
    const tracker = new ElementTracker();
    tracker.claim(new Map([[a, [element('to-cluster4 0x1', '0x1')]]]));
    applyAll(tracker);
    tracker.claim(new Map([[a, [element('to-cluster4 0x1', '0x2')]]]));
    expect(applyAll(tracker)).toEqual([
      { kind: 'delete', id: 'to-cluster4 0x1' },
      { kind: 'add', id: 'to-cluster4 0x1', data: '0x2' },
    ]);
    expect([...tracker.actual()]).toEqual([element('to-cluster4 0x1', '0x2')]);
  });

  test('an element of two services goes with the last of them', () => {
    const tracker = new ElementTracker();
    const shared = [element('cluster-ips4 10.96.0.1')];
    tracker.claim(
      new Map([
        [a, shared],
        [b, shared],
      ]),
    );
    expect(applyAll(tracker)).toHaveLength(1);
    tracker.claim(new Map([[a, []]]));
    expect(pendingOf(tracker)).toEqual([]);
    tracker.claim(new Map([[b, []]]));
    expect(applyAll(tracker)).toEqual([{ kind: 'delete', id: 'cluster-ips4 10.96.0.1' }]);
  });

  test('an element that moves to another service within one apply is one change of the new owner', () => {
    const tracker = new ElementTracker();
    tracker.claim(new Map([[a, [element('frontends4 x', '0x1')]]]));
    applyAll(tracker);
    tracker.claim(
      new Map([
        [b, [element('frontends4 x', '0x2')]],
        [a, []],
      ]),
    );
    expect([...tracker.pending().keys()]).toEqual([b]);
    expect(applyAll(tracker)).toHaveLength(2);
  });

  test('what nobody wants has no owner', () => {
    const tracker = new ElementTracker();
    tracker.replaceActual([element('frontends4 x', '0x1')]);
    expect([...tracker.pending()]).toEqual([[undefined, [{ kind: 'delete', id: 'frontends4 x' }]]]);
  });

  test('what the kernel lost is pending again, for its owner', () => {
    const tracker = new ElementTracker();
    tracker.claim(new Map([[a, [element('frontends4 x', '0x1')]]]));
    applyAll(tracker);
    tracker.replaceActual([]);
    expect([...tracker.pending()]).toEqual([[a, [{ kind: 'add', id: 'frontends4 x', data: '0x1' }]]]);
  });

  test('knows all claimants', () => {
    const tracker = new ElementTracker();
    tracker.claim(
      new Map([
        [a, [element('frontends4 x', '0x1')]],
        [b, []],
      ]),
    );
    expect([...tracker.owners()]).toEqual([a]);
  });
});

describe('orderChanges', () => {
  test('adds what is pointed to first, deletes it last, and settings come between', () => {
    const changes: readonly Change[] = [
      { kind: 'delete', id: 'endpoints4 0x1 . 0' },
      { kind: 'delete', id: 'frontends4 old' },
      { kind: 'replace', object: 'pod-cidrs4', content: ['10.0.0.0/8'] },
      { kind: 'add', id: 'cluster-ips4 1', data: '' },
      { kind: 'add', id: 'frontends4 new', data: '0x1' },
      { kind: 'add', id: 'frontends4 changed', data: '0x2' },
      { kind: 'delete', id: 'frontends4 changed' },
      { kind: 'add', id: 'endpoints4 0x2 . 0', data: 'x' },
    ];
    expect(printChanges('t', orderChanges(changes))).toBe(`add element inet t endpoints4 { 0x2 . 0 : x }
delete element inet t frontends4 { changed }
add element inet t frontends4 { new : 0x1, changed : 0x2 }
add element inet t cluster-ips4 { 1 }
flush set inet t pod-cidrs4
add element inet t pod-cidrs4 { 10.0.0.0/8 }
delete element inet t frontends4 { old }
delete element inet t endpoints4 { 0x1 . 0 }
`);
  });
});

describe('printChanges', () => {
  test('nothing is no text', () => {
    expect(printChanges('t', [])).toBe('');
  });

  test('long lists are several commands', () => {
    const changes = Array.from({ length: 501 }, (_, index): Change => ({
      kind: 'add',
      id: `hairpin4 ${index}`,
      data: '',
    }));
    expect(printChanges('t', changes).split('\n')).toHaveLength(3);
  });

  test('an emptied set is only flushed', () => {
    expect(printChanges('t', [{ kind: 'replace', object: 'pod-cidrs6', content: [] }])).toBe(
      'flush set inet t pod-cidrs6\n',
    );
  });
});
