import { type Flow, InvariantError, parseIp, parsePort } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { FakeIptables } from './fake-iptables.ts';
import { tracePacket, traceReturning } from './trace-packet.ts';

const flow = (from: Flow['from'], more: Partial<Flow> = {}): Flow => ({
  from,
  source: parseIp('172.18.0.100'),
  destination: parseIp('10.96.0.10'),
  destinationPort: parsePort(80),
  protocol: 'TCP',
  destinationIsLocal: false,
  ...more,
});

function rules(table: string, ...lines: readonly string[]): string {
  const chains = ['A', 'B', 'C'].map((name) => `:${name} - [0:0]`);
  return [`*${table}`, ...chains, ...lines.map((line) => `-A ${line}`), 'COMMIT', ''].join('\n');
}

function fakeWith(...texts: readonly string[]): FakeIptables {
  const fake = new FakeIptables();
  for (const text of texts) fake.put('IPv4', 'nft', text);
  return fake;
}

const to = (pod: string): string => `-p tcp -j DNAT --to-destination ${pod}:8080`;
const cascade = rules(
  'nat',
  'PREROUTING -d 10.96.0.10 -j A',
  'OUTPUT -d 10.96.0.10 -j A',
  'A -m statistic --mode random --probability 0.5 -j B',
  'A -j C',
  `B ${to('10.244.1.5')}`,
  `C ${to('10.244.2.5')}`,
);

describe('a traced packet', () => {
  test('takes all ways that chance could choose', () => {
    expect(tracePacket(fakeWith(cascade), flow('pod'))).toEqual({
      kind: 'forward',
      endpoints: ['10.244.1.5:8080', '10.244.2.5:8080'],
      masquerade: false,
    });
  });

  test.each([
    { title: 'goes its own way where no rule matches', lines: [], from: 'pod', is: 'pass' },
    { title: 'is refused on its way through', lines: ['FORWARD -j A', 'A -j REJECT'], from: 'pod', is: 'reject' },
    { title: 'meets no FORWARD when the node sends it', lines: ['FORWARD -j DROP'], from: 'node', is: 'pass' },
    { title: 'meets OUTPUT when the node sends it', lines: ['OUTPUT -j DROP'], from: 'node', is: 'drop' },
    { title: 'is new to conntrack', lines: ['FORWARD -m conntrack ! --ctstate NEW -j DROP'], from: 'pod', is: 'pass' },
    {
      title: 'comes back from a chain',
      lines: ['FORWARD -j A', 'A -j RETURN', 'FORWARD -j DROP'],
      from: 'pod',
      is: 'drop',
    },
    {
      title: 'does not come back from a goto',
      lines: ['FORWARD -j A', 'A -g B', 'A -j DROP', 'B -p udp -j DROP'],
      from: 'pod',
      is: 'pass',
    },
    {
      title: "passes INPUT where the address is the node's",
      lines: ['INPUT -j DROP'],
      from: 'pod',
      isLocal: true,
      is: 'drop',
    },
    { title: 'meets INPUT by way of lo', lines: ['INPUT -j REJECT'], from: 'node', isLocal: true, is: 'reject' },
  ] as const)('$title', ({ lines, from, is, ...more }) => {
    const destinationIsLocal = 'isLocal' in more;
    expect(tracePacket(fakeWith(rules('filter', ...lines)), flow(from, { destinationIsLocal }))).toEqual({ kind: is });
  });

  test('is dropped by a policy', () => {
    expect(tracePacket(fakeWith('*filter\n:FORWARD DROP [0:0]\nCOMMIT\n'), flow('pod'))).toEqual({ kind: 'drop' });
  });

  test('is masqueraded where it carries the mark, which must be gone then', () => {
    const mark = rules('nat', 'PREROUTING -j A', 'A -j MARK --or-mark 0x4000', `A ${to('10.244.1.5')}`);
    const masquerade = ['POSTROUTING -j B', 'B -m mark ! --mark 0x4000/0x4000 -j RETURN'];
    const cleared = [...masquerade, 'B -j MARK --xor-mark 0x4000', 'B -j MASQUERADE'];
    const post = (lines: readonly string[]): string =>
      ['*nat', ...lines.map((line) => `-A ${line}`), 'COMMIT', ''].join('\n');
    expect(tracePacket(fakeWith(mark, post(cleared)), flow('outside'))).toMatchObject({ masquerade: true });
    expect(() => tracePacket(fakeWith(mark, post([...masquerade, 'B -j MASQUERADE'])), flow('outside'))).toThrow(
      /leaves with mark/,
    );
  });

  test('may not depend on chance', () => {
    const half = rules('filter', 'FORWARD -m statistic --mode random --probability 0.5 -j DROP');
    expect(() => tracePacket(fakeWith(cascade, half), flow('pod'))).toThrow(InvariantError);
  });

  test('of a pod that reaches itself must be masqueraded', () => {
    expect(() => tracePacket(fakeWith(cascade), flow('pod', { source: parseIp('10.244.1.5') }))).toThrow(
      /unmasqueraded/,
    );
  });

  test('uses the newer of two nat tables', () => {
    const fake = fakeWith(cascade);
    fake.put('IPv4', 'legacy', rules('nat', `PREROUTING ${to('10.244.9.9')}`));
    expect(tracePacket(fake, flow('pod'))).toMatchObject({ endpoints: ['10.244.9.9:8080'] });
  });

  test('is counted once, by each rule on its first way', async () => {
    const fake = fakeWith(cascade);
    tracePacket(fake, flow('pod'));
    const counts = [...(fake.table('IPv4', 'nft', 'nat')?.chains ?? [])].flatMap(([name, { entries }]) =>
      entries.map(({ packets }) => `${name} ${packets}`),
    );
    expect(counts).toEqual(['PREROUTING 1', 'OUTPUT 0', 'A 1', 'A 0', 'B 1', 'C 0']);
  });
});

test('a client comes back to the endpoint that remembers it, and to no other', () => {
  const sticky = rules(
    'nat',
    'PREROUTING -j A',
    'A -m recent --name one --rcheck --seconds 600 --reap -j B',
    'A -m recent --name two --rcheck --seconds 600 --reap -j C',
    'A -m statistic --mode random --probability 0.5 -j B',
    'A -j C',
    `B -m recent --name one --set ${to('10.244.1.5')}`,
    `C -m recent --name two --set ${to('10.244.2.5')}`,
  );
  const fake = fakeWith(sticky);
  expect(tracePacket(fake, flow('pod'))).toMatchObject({ endpoints: ['10.244.1.5:8080', '10.244.2.5:8080'] });
  expect(traceReturning(fake, flow('pod'), parseIp('10.244.2.5'))).toMatchObject({ endpoints: ['10.244.2.5:8080'] });
  expect(() => traceReturning(fake, flow('pod'), parseIp('10.244.3.5'))).toThrow(InvariantError);
});
