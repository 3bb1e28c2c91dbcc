import { parseIp, type Protocol } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { exampleSpec, lastUpProfile, nodeTargets, portSpec } from '../testing/example-specs.ts';
import { healthUpdate, healthUpdateInLog, targetHealth } from './haproxy-health.ts';

const header = '# be_id be_name srv_id srv_name srv_addr srv_op_state';
const line = (backend: string, server: string, state: 0 | 2): string =>
  `3 ${backend} 1 ${server} 192.0.2.1 ${state} 0 1 1 3 8 2 0 6 0 0 0 - 30080 - 0 32080 - - -`;
const dump = (...lines: readonly string[]): string => `1\n${header}\n${lines.join('\n')}\n`;
const udp = portSpec(53, nodeTargets(30053), 'UDP');
const [node1, node2] = udp.targets;

describe('targetHealth', () => {
  const dns = exampleSpec('dns', { ports: [udp], profile: lastUpProfile });
  const check = 'kind:default:dns:check:ipv4';
  test.each<[title: string, states: readonly string[], up: readonly boolean[]]>([
    ['one is UP', [line(check, 'node1', 2), line(check, 'node2', 0), line(`${check}:last`, 'node2', 2)], [true, false]],
    ['none is UP, one was', [line(check, 'node1', 0), line(`${check}:last`, 'node2', 2)], [false, true]],
    ['none is UP, nor was', [line(check, 'node1', 0), line(`${check}:last`, 'node1', 0)], [false, false]],
    ['HAProxy knows none of them', [line('kind:default:other:check:ipv4', 'node1', 2)], [false, false]],
  ])('%s', (_, states, up) => {
    const health = targetHealth([dns], dump(...states));
    expect([node1!, node2!].map((target) => health.isUp(dns.id, target))).toEqual(up);
  });

  test('of endpoints with the same name, each is as its own check says', () => {
    const elsewhere = { ...node1!, check: { ...node1!.check, address: parseIp('172.18.0.99') } };
    const ports = [udp, portSpec(54, [elsewhere], 'SCTP')];
    const spec = exampleSpec('dns', { ports });
    const health = targetHealth([spec], dump(line(check, 'node1', 0), line(check, 'node1:2', 2)));
    expect([node1!, elsewhere].map((target) => health.isUp(spec.id, target))).toEqual([false, true]);
  });
});

describe('healthUpdate', () => {
  const tcpAndUdp = (protocols: readonly Protocol[]): ReturnType<typeof exampleSpec> =>
    exampleSpec('dns', { ports: protocols.map((one, index) => portSpec(53 + index, nodeTargets(30053 + index), one)) });
  const change = { isUp: false, server: 'node2', reason: 'Layer4 timeout' };
  const reported = { target: 'node2', isUp: false, time: 7, reason: 'Layer4 timeout', ipFamily: 'IPv4' };

  test('a server that carries traffic changes its port alone', () => {
    const spec = tcpAndUdp(['TCP', 'UDP']);
    const update = healthUpdate({ ...change, backend: 'kind:default:dns:53:ipv4' }, [spec], 7);
    expect(update).toEqual({ changes: [{ ...reported, id: spec.id, port: 53 }], concernsKernel: false });
  });

  test('one that is only checked changes all ports that the kernel forwards', () => {
    const spec = tcpAndUdp(['TCP', 'UDP', 'SCTP']);
    const update = healthUpdate({ ...change, backend: 'kind:default:dns:check:ipv4' }, [spec], 7);
    const changes = [54, 55].map((port) => ({ ...reported, id: spec.id, port }));
    expect(update).toEqual({ changes, concernsKernel: true });
  });

  test.each([
    ['kind:default:dns:53:ipv4:last', false],
    ['kind:default:dns:check:ipv4:last', true],
    ['kind:default:other:53:ipv4', false],
    ['switchyard-idle', false],
  ])('%s changes no port; for the kernel: %s', (backend, concernsKernel) => {
    const profile = lastUpProfile;
    const specs = [{ ...tcpAndUdp(['TCP', 'UDP']), profile }];
    expect(healthUpdate({ ...change, backend }, specs, 7)).toEqual({ changes: [], concernsKernel });
  });

  test('is read from the lines of a log', () => {
    const spec = tcpAndUdp(['TCP']);
    const text =
      'Server kind:default:dns:53:ipv4/node2 is DOWN, reason: Layer4 timeout, check duration: 200ms. 0 active and 0 backup servers left.';
    expect(healthUpdateInLog(text, [spec], 7)?.changes).toEqual([{ ...reported, id: spec.id, port: 53 }]);
    expect(healthUpdateInLog('Proxy stopped', [spec], 7)).toBeUndefined();
  });
});
