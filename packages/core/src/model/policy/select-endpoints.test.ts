import { describe, expect, test } from 'vitest';
import {
  type ClusterSpec,
  type EndpointSpec,
  node,
  service,
  type ServiceSpec,
  slice,
  tableOf,
  tableOptions,
} from '../../testing/index.ts';
import { selectEndpoints } from './decide.ts';

// Endpoint i has the address 10.0.0.i. What is not said: ready, serving, on another node, no hints.
type Spec = Omit<EndpointSpec, 'ip' | 'node'> & { readonly local?: true };
const local: Spec = { local: true };
const remote: Spec = {};
const inZone = (...zoneHints: string[]): Spec => ({ zoneHints });
const unready: Spec = { ready: false };
const draining: Spec = { terminating: true };
const gone: Spec = { terminating: true, serving: false };

function clusterOf(spec: ServiceSpec, endpoints: readonly Spec[], zone: string): ClusterSpec {
  return {
    services: [service('ns/svc', spec)],
    nodes: [node('n1', { zone })],
    slices: [
      slice('ns/svc', {
        endpoints: endpoints.map(({ local: isLocal, ...rest }, index) => ({
          ...rest,
          ip: `10.0.0.${index}`,
          node: isLocal === true ? 'n1' : 'n2',
        })),
      }),
    ],
  };
}

function sets(cluster: ClusterSpec, terminatingFallback: 'on' | 'off'): readonly [string, string, boolean] {
  const port = tableOf(cluster, tableOptions({ terminatingFallback })).services.values().next().value;
  if (port === undefined) throw new Error('the table has no service');
  const last = (policy: 'Cluster' | 'Local'): string =>
    port.endpoints[policy].map((endpoint) => endpoint.address.slice('10.0.0.'.length)).join(' ');
  const clusterIp = port.frontends.find((frontend) => frontend.kind === 'clusterIP');
  return [last('Cluster'), last('Local'), clusterIp?.decisions.pod.kind !== 'reject'];
}

const internalOnly: ServiceSpec = {};
const internalLocal: ServiceSpec = { internal: 'Local' };
const externalLocal: ServiceSpec = { external: 'Local', ports: [{ nodePort: 30080 }] };
const internalLocalExternal: ServiceSpec = { internal: 'Local', ports: [{ nodePort: 30080 }] };
const bothLocal: ServiceSpec = { internal: 'Local', external: 'Local', ports: [{ nodePort: 30080 }] };
const leftover: ServiceSpec = { type: 'ClusterIP', external: 'Local' };

/** Columns: Cluster set, Local set, usable anywhere. A set that the Service never uses is empty. */
describe('the sets of a service', () => {
  test.each<readonly [string, ServiceSpec, readonly Spec[], string, string, string, boolean]>([
    [
      'zone hints narrow the Cluster set',
      internalOnly,
      [inZone('a'), inZone('b'), inZone('c'), inZone('a')],
      'a',
      '0 3',
      '',
      true,
    ],
    ['a node without a zone ignores hints', internalOnly, [inZone('a')], '', '0', '', true],
    ['a zone that no hint names ignores hints', internalOnly, [inZone('a')], 'b', '0', '', true],
    [
      'one endpoint without a hint disables hints',
      internalOnly,
      [inZone('a'), inZone('b'), remote, inZone('a')],
      'a',
      '0 1 2 3',
      '',
      true,
    ],
    [
      'an endpoint may be hinted for several zones',
      internalOnly,
      [inZone('a', 'b', 'c'), inZone('b', 'c'), inZone('b', 'd'), inZone('c')],
      'c',
      '0 1 3',
      '',
      true,
    ],
    [
      'an unready endpoint is left out before hints',
      internalOnly,
      [inZone('a'), inZone('b'), inZone('c'), { ...inZone('a'), ...unready }],
      'a',
      '0',
      '',
      true,
    ],
    [
      'only unready endpoints in the zone: hints are ignored',
      internalOnly,
      [{ ...inZone('a'), ...unready }, inZone('b'), inZone('c')],
      'a',
      '1 2',
      '',
      true,
    ],
    [
      'an unready endpoint without a hint does not disable hints',
      internalOnly,
      [inZone('a'), inZone('b'), unready],
      'a',
      '0',
      '',
      true,
    ],
    [
      'hints never narrow the Local set (external)',
      externalLocal,
      [{ ...inZone('a'), ...local }, { ...inZone('b'), ...local }, inZone('c'), inZone('a')],
      'a',
      '0 3',
      '0 1',
      true,
    ],
    [
      'hints never narrow the Local set (internal)',
      internalLocalExternal,
      [{ ...inZone('a'), ...local }, { ...inZone('b'), ...local }, inZone('c'), inZone('a')],
      'a',
      '0 3',
      '0 1',
      true,
    ],
    [
      'zone and place overlap in part',
      externalLocal,
      [{ ...inZone('a'), ...local }, { ...inZone('b'), ...local }, inZone('a'), inZone('b')],
      'a',
      '0 2',
      '0 1',
      true,
    ],
    ['no endpoints at all', internalOnly, [], '', '', '', false],
    ['internal Local without endpoints', internalLocal, [], '', '', '', false],
    ['internal Local, all remote', internalLocal, [remote, remote], '', '', '', true],
    ['internal Local, all local', internalLocal, [local, local], '', '', '0 1', true],
    ['internal Local, some local', internalLocal, [local, remote], '', '', '0', true],
    ['internal Local and nothing external: no Cluster set', internalLocal, [remote, local], '', '', '1', true],
    ['Cluster, nothing ready', internalOnly, [unready, unready], '', '', '', false],
    ['Cluster, some ready', internalOnly, [unready, remote], '', '1', '', true],
    ['Cluster, all draining', internalOnly, [{ ...draining, ...local }, draining], '', '0 1', '', true],
    ['Cluster, all terminating without serving', internalOnly, [gone, gone], '', '', '', false],
    ['Cluster, one ready beside draining ones', internalOnly, [draining, remote, draining], '', '1', '', true],
    [
      'draining endpoints ignore hints',
      internalOnly,
      [
        { ...inZone('a'), ...draining },
        { ...inZone('b'), ...draining },
      ],
      'a',
      '0 1',
      '',
      true,
    ],
    ['internal Local, external Cluster', internalLocalExternal, [local, remote], '', '0 1', '0', true],
    ['internal Cluster, external Local', externalLocal, [local, remote], '', '0 1', '0', true],
    ['both Local, some local', bothLocal, [local, remote], '', '0 1', '0', true],
    ['both Local, all remote', bothLocal, [remote, remote], '', '0 1', '', true],
    ['both Local, all remote and draining', bothLocal, [draining, draining], '', '0 1', '', true],
    [
      'Local falls back while Cluster need not',
      externalLocal,
      [remote, { ...unready, serving: false, ...local }, { ...draining, ...local }, draining],
      '',
      '0',
      '2',
      true,
    ],
    ['Cluster falls back and Local has nothing', externalLocal, [draining, unready], '', '0', '', true],
    ['a leftover external Local on a ClusterIP Service', leftover, [remote, local], '', '0 1', '', true],
    ['internal Local, all local draining', internalLocal, [{ ...draining, ...local }], '', '', '0', true],
  ])('%s', (...row) => {
    const [, spec, endpoints, zone, ...expected] = row;
    expect(sets(clusterOf(spec, endpoints, zone), 'on')).toEqual(expected);
  });

  test.each<readonly [string, ServiceSpec, readonly Spec[], string, string, boolean]>([
    ['Cluster, all draining', internalOnly, [{ ...draining, ...local }, draining], '', '', false],
    ['both Local, all remote and draining', bothLocal, [draining, draining], '', '', false],
    ['Local does not fall back', externalLocal, [remote, { ...draining, ...local }], '0', '', true],
    ['ready endpoints are still used', externalLocal, [remote, local], '0 1', '1', true],
  ])('without the terminating fallback: %s', (...row) => {
    const [, spec, endpoints, ...expected] = row;
    expect(sets(clusterOf(spec, endpoints, ''), 'off')).toEqual(expected);
  });
});

test('a set from which nothing is left out is the very array that was given', () => {
  const cluster = clusterOf(internalOnly, [remote, remote], '');
  const port = tableOf(cluster).services.values().next().value;
  expect(port?.endpoints.Cluster).toBe(port?.knownEndpoints);
  const known = port?.knownEndpoints ?? [];
  const context = { here: { name: tableOptions().nodeName, zone: '' }, terminatingFallback: 'on' } as const;
  expect(selectEndpoints(known, 'Local', context)).toEqual([]);
});
