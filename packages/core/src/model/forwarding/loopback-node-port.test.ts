import { describe, expect, test } from 'vitest';
import { seconds } from '../../base/time.ts';
import { flow, service, type ServiceSpec, slice, tableOf, tableOptions, verdictText } from '../../testing/index.ts';
import type { ForwardingTable } from './forwarding-table.ts';
import { explain } from './explain.ts';
import { loopbackNodePort } from './loopback-node-port.ts';
import { socketTraits, strictTraits } from '../../testing/traits.ts';

const here = { ip: '10.244.1.5', node: 'n1' };
const there = { ip: '10.244.2.5', node: 'n2' };
const draining = { ip: '10.244.2.6', node: 'n2', terminating: true };
const nodePorts = { ports: [{ nodePort: 30080 }] };

function tableFor(spec: ServiceSpec, endpoints: readonly (typeof here)[], ipFamily?: 'IPv6'): ForwardingTable {
  const services = [service('shop/cart', spec)];
  const [{ protocol = 'TCP' as const } = {}] = spec.ports ?? [];
  const slices = [slice('shop/cart', { endpoints, ports: [{ protocol, port: 8080 }], ...(ipFamily && { ipFamily }) })];
  return tableOf({ services, slices }, tableOptions({ ...(ipFamily && { ipFamily }), localhostNodePorts: 'proxy' }));
}

function served(spec: ServiceSpec, endpoints: readonly (typeof here)[]) {
  const [one] = tableFor(spec, endpoints).services.values();
  return one && loopbackNodePort(one);
}

describe('what the loopback proxy serves', () => {
  test.each([
    ['every endpoint', {}, [here, there], ['10.244.1.5', '10.244.2.5']],
    ['of policy Local those on this node', { external: 'Local' as const }, [here, there], ['10.244.1.5']],
    ['ready ones before terminating ones', {}, [here, draining], ['10.244.1.5']],
    ['terminating ones where none is ready', {}, [draining], ['10.244.2.6']],
  ])('%s', (_, spec, endpoints, expected) => {
    const node = served({ ...nodePorts, ...spec }, endpoints);
    expect(node?.endpoints.map(({ address }) => address)).toEqual(expected);
    expect(node).toMatchObject({ service: 'shop/cart:/TCP', port: 30080, sessionAffinity: { kind: 'none' } });
  });

  test.each([
    ['without endpoints', nodePorts, []],
    ['of policy Local without an endpoint on this node', { ...nodePorts, external: 'Local' as const }, [there]],
    ['without a NodePort', {}, [here]],
    ['of UDP', { ports: [{ nodePort: 30080, protocol: 'UDP' as const }] }, [here]],
    ['of SCTP', { ports: [{ nodePort: 30080, protocol: 'SCTP' as const }] }, [here]],
  ])('nothing %s', (_, spec, endpoints) => {
    expect(served(spec, endpoints)).toBeUndefined();
  });

  test('session affinity is passed on', () => {
    expect(served({ ...nodePorts, affinitySeconds: 60 }, [here])?.sessionAffinity).toEqual({
      kind: 'clientIP',
      timeout: seconds(60),
    });
  });
});

describe('what explain says of it', () => {
  const fromItself = flow('node', '127.0.0.1:30080', { source: '127.0.0.1', isLocal: true });
  const local = { ...nodePorts, external: 'Local' as const };

  test.each([
    ['the listening address', nodePorts, [here, there], fromItself, '10.244.1.5 10.244.2.5 masqueraded'],
    ['policy Local, endpoints here and elsewhere', local, [here, there], fromItself, '10.244.1.5 masqueraded'],
    ['policy Local, endpoints elsewhere', local, [there], fromItself, 'reject'],
    ['no endpoint', nodePorts, [], fromItself, 'reject'],
    ['another loopback address', nodePorts, [here], flow('node', '127.0.0.2:30080', { isLocal: true }), 'pass'],
    [
      'UDP',
      { ports: [{ nodePort: 30080, protocol: 'UDP' as const }] },
      [here],
      flow('node', '127.0.0.1:30080/UDP', { isLocal: true }),
      'pass',
    ],
  ])('%s', (_, spec, endpoints, sent, expected) => {
    for (const traits of [strictTraits, socketTraits])
      expect(verdictText(explain(tableFor(spec, endpoints), sent, traits).verdict)).toBe(expected);
  });

  test('the same in IPv6', () => {
    const table = tableFor(
      { ...nodePorts, clusterIps: ['fd00:10:96::a'] },
      [{ ip: 'fd00:10:244::5', node: 'n1' }],
      'IPv6',
    );
    expect(verdictText(explain(table, flow('node', '[::1]:30080', { isLocal: true }), strictTraits).verdict)).toBe(
      'fd00:10:244::5 masqueraded',
    );
  });

  test('it names the proxy, in the eBPF mode too', () => {
    for (const traits of [strictTraits, socketTraits]) {
      const { reasons } = explain(tableFor(nodePorts, [here]), fromItself, traits);
      expect(reasons.map(({ code }) => code)).toEqual(['nodePort', 'externalTrafficPolicy', 'sentByProxy']);
    }
  });

  test('it says where NodePorts answer instead', () => {
    const sent = flow('node', '127.0.0.2:30080', { isLocal: true });
    const { reasons } = explain(tableFor(nodePorts, [here]), sent, strictTraits);
    expect(reasons).toEqual([
      {
        code: 'nodePortOnLoopback',
        text: '127.0.0.2:30080/TCP: of the loopback addresses NodePorts answer on 127.0.0.1 alone, for TCP',
      },
    ]);
  });
});
