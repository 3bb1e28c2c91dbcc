import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from './json.ts';
import { deployments } from './resources/deployments.ts';
import { pods } from './resources/pods.ts';
import { services } from './resources/services.ts';
import { StatusError } from './status-error.ts';
import { applyJsonPatch, applyMergePatch, applyStrategicMergePatch } from './patch.ts';

const ports = (...list: readonly Json[]): JsonObject => ({ spec: { ports: list } });
const p80 = { port: 80, name: 'a', nodePort: 30080 };
const p81 = { port: 81, name: 'b' };

describe('strategic merge patch', () => {
  test.each<[string, JsonObject, JsonObject, JsonObject]>([
    ['a port with the same number is merged', ports(p80), ports({ port: 80, name: 'x' }), ports({ ...p80, name: 'x' })],
    ['a new port comes in the order of the patch', ports(p80), ports(p81, { port: 80 }), ports(p81, p80)],
    [
      'a port that the patch does not name stays',
      ports(p80, p81),
      ports({ port: 81, name: 'y' }),
      ports(p80, { port: 81, name: 'y' }),
    ],
    ['$patch: delete removes a port', ports(p80, p81), ports({ $patch: 'delete', port: 80 }), ports(p81)],
    [
      '$patch: replace replaces the list',
      ports(p80, p81),
      ports({ port: 82 }, { $patch: 'replace' }),
      ports({ port: 82 }),
    ],
    [
      '$setElementOrder reorders without touching',
      ports(p80, p81),
      { spec: { '$setElementOrder/ports': [{ port: 81 }, { port: 80 }] } },
      ports(p81, p80),
    ],
    [
      'an element that only the server has keeps its place before the one it stood before',
      ports(p80, p81),
      { spec: { '$setElementOrder/ports': [{ port: 81 }, { port: 82 }], ports: [{ port: 82 }] } },
      ports(p80, p81, { port: 82 }),
    ],
    ['null removes a field', { spec: { type: 'x', a: 1 } }, { spec: { a: null } }, { spec: { type: 'x' } }],
    [
      'an atomic list is replaced',
      { spec: { externalIPs: ['a', 'b'] } },
      { spec: { externalIPs: ['c'] } },
      { spec: { externalIPs: ['c'] } },
    ],
    [
      '$patch: replace replaces a map',
      { metadata: { labels: { a: '1' } } },
      { metadata: { labels: { $patch: 'replace', b: '2' } } },
      { metadata: { labels: { b: '2' } } },
    ],
    [
      '$patch: delete empties a map away',
      { spec: { selector: { a: '1' } } },
      { spec: { selector: { $patch: 'delete' } } },
      { spec: {} },
    ],
    [
      '$deleteFromPrimitiveList removes from a set',
      { metadata: { finalizers: ['a', 'b'] } },
      { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] } },
      { metadata: { finalizers: ['b'] } },
    ],
    [
      'a set is united',
      { metadata: { finalizers: ['a'] } },
      { metadata: { finalizers: ['b', 'a'] } },
      { metadata: { finalizers: ['b', 'a'] } },
    ],
  ])('%s', (_what, document, patch, result) => {
    expect(applyStrategicMergePatch(document, patch, services.schema)).toEqual(result);
  });

  test('containers merge by name, their env by name', () => {
    const before = {
      spec: {
        template: {
          spec: { containers: [{ name: 'app', image: 'x:1', env: [{ name: 'A', value: '1' }] }, { name: 'side' }] },
        },
      },
    };
    const change = {
      spec: { template: { spec: { containers: [{ name: 'app', env: [{ name: 'B', value: '2' }] }] } } },
    };
    const merged = applyStrategicMergePatch(before, change, deployments.schema);
    expect(merged).toEqual({
      spec: {
        template: {
          spec: {
            containers: [
              {
                name: 'app',
                image: 'x:1',
                env: [
                  { name: 'B', value: '2' },
                  { name: 'A', value: '1' },
                ],
              },
              { name: 'side' },
            ],
          },
        },
      },
    });
  });

  test('$retainKeys drops the other branch of a union', () => {
    const before = { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } };
    const change = { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } };
    expect(applyStrategicMergePatch(before, change, deployments.schema)).toEqual({
      spec: { strategy: { type: 'Recreate' } },
    });
  });

  test('conditions merge by type', () => {
    const before = {
      status: {
        conditions: [
          { type: 'Ready', status: 'False' },
          { type: 'Initialized', status: 'True' },
        ],
      },
    };
    const change = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
    expect(applyStrategicMergePatch(before, change, pods.schema)).toEqual({
      status: {
        conditions: [
          { type: 'Ready', status: 'True' },
          { type: 'Initialized', status: 'True' },
        ],
      },
    });
  });

  test('the document is not changed', () => {
    const before = ports(p80);
    applyStrategicMergePatch(before, ports({ port: 80, name: 'x' }, p81), services.schema);
    expect(before).toEqual(ports(p80));
  });
});

describe('merge patch', () => {
  test.each<[string, JsonObject, JsonObject, JsonObject]>([
    ['objects merge', { a: { b: 1 } }, { a: { c: 2 } }, { a: { b: 1, c: 2 } }],
    ['null removes', { a: { b: 1 } }, { a: { b: null } }, { a: {} }],
    ['lists are replaced', { a: [1, 2] }, { a: [3] }, { a: [3] }],
    ['an object replaces a scalar', { a: 1 }, { a: { b: null, c: 1 } }, { a: { c: 1 } }],
  ])('%s', (_what, document, patch, result) => {
    expect(applyMergePatch(document, patch)).toEqual(result);
  });
});

describe('JSON patch', () => {
  test.each<[string, JsonObject, Json, JsonObject]>([
    ['add to a list by position', { l: [1, 2] }, [{ op: 'add', path: '/l/1', value: 9 }], { l: [1, 9, 2] }],
    ['add to the end of a list', { l: [1] }, [{ op: 'add', path: '/l/-', value: 2 }], { l: [1, 2] }],
    [
      'remove and replace',
      { a: 1, b: 2 },
      [
        { op: 'remove', path: '/a' },
        { op: 'replace', path: '/b', value: 3 },
      ],
      { b: 3 },
    ],
    [
      'move and copy',
      { a: { x: 1 } },
      [
        { op: 'copy', from: '/a/x', path: '/b' },
        { op: 'move', from: '/a', path: '/c' },
      ],
      { b: 1, c: { x: 1 } },
    ],
    [
      'escaped names',
      { 'a/b~c': 1 },
      [
        { op: 'test', path: '/a~1b~0c', value: 1 },
        { op: 'remove', path: '/a~1b~0c' },
      ],
      {},
    ],
  ])('%s', (_what, document, patch, result) => {
    expect(applyJsonPatch(document, patch)).toEqual(result);
  });

  test.each<[string, Json, number]>([
    ['a test that fails', [{ op: 'test', path: '/a', value: 2 }], 422],
    ['replacing what is not there', [{ op: 'replace', path: '/x', value: 2 }], 422],
    ['removing what is not there', [{ op: 'remove', path: '/x' }], 422],
    ['a path through nothing', [{ op: 'add', path: '/x/y', value: 2 }], 422],
    ['a list position past the end', [{ op: 'add', path: '/l/5', value: 2 }], 422],
    ['an unknown operation', [{ op: 'frob', path: '/a' }], 400],
    ['something that is no list', { op: 'add' }, 400],
  ])('%s is refused', (_what, patch, code) => {
    let error: unknown;
    try {
      applyJsonPatch({ a: 1, l: [] }, patch);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(StatusError);
    expect((error as StatusError).fields.code).toBe(code);
  });
});
