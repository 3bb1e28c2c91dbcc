import { describe, expect, test } from 'vitest';
import { ScriptedRunner } from '@switchyard/host/testing';
import { NftError, type NftRefusal } from '../nft-error.ts';
import { createNftClient } from './nft-client.ts';
import { parseCounters, parseElements, parseIntervals } from './parse-elements.ts';

const { signal } = new AbortController();

// Printed by nft 1.0.6.
const noise = 'internal:0:0-0: Error: conflicting protocols specified: tcp vs. th\n\n';

describe('parseElements', () => {
  test.each([
    ['frontends', '4', [{ concat: ['172.30.0.1', 'tcp', 80] }, '30:1'], 'frontends4 172.30.0.1 . tcp . 80', '0x300001'],
    ['frontends', '6', [{ concat: ['::10.0.0.1', 'udp', 53] }, '7f0:2'], 'frontends6 ::a00:1 . udp . 53', '0x7f00002'],
    ['nodeports', '4', [{ concat: ['132', 30080] }, '20:'], 'nodeports4 sctp . 30080', '0x200000'],
    ['to-cluster', '4', [':1', '30:2'], 'to-cluster4 0x1', '0x300002'],
    ['to-local', '6', ['0:1', 'none'], 'to-local6 0x1', '0x0'],
    [
      'endpoints',
      '4',
      [{ concat: ['0:2', 0] }, { concat: ['10.2.1.10', 8080] }],
      'endpoints4 0x2 . 0',
      '10.2.1.10 . 8080',
    ],
    ['hairpin', '6', { concat: ['fd00::1', 'fd00::1', 6, 80] }, 'hairpin6 fd00::1 . fd00::1 . tcp . 80', ''],
    ['cluster-ips', '4', '172.30.0.1', 'cluster-ips4 172.30.0.1', ''],
    [
      'nodeports',
      '4',
      [{ elem: { val: { concat: ['tcp', 80] }, counter: { packets: 1, bytes: 60 } } }, '20:1'],
      'nodeports4 tcp . 80',
      '0x200001',
    ],
    [
      'fw-allow',
      '4',
      { concat: ['10.0.0.1', 'tcp', 80, { prefix: { addr: '10.0.0.0', len: 8 } }] },
      'fw-allow4 10.0.0.1 . tcp . 80 . 10.0.0.0/8',
      '',
    ],
    ['fw-allow', '6', { concat: ['fd00::1', 'tcp', 80, '::5'] }, 'fw-allow6 fd00::1 . tcp . 80 . ::5/128', ''],
    [
      'fw-allow',
      '4',
      { concat: ['10.0.0.1', 'tcp', 80, { range: ['10.0.0.1', '10.0.0.9'] }] },
      'fw-allow4 10.0.0.1 . tcp . 80 . 10.0.0.1-10.0.0.9',
      '',
    ],
    [
      'nodeports',
      '4',
      [{ elem: { val: { concat: ['tcp', 30080] }, counter: { packets: 3, bytes: 180 } } }, '20:1'],
      'nodeports4 tcp . 30080',
      '0x200001',
    ],
    [
      'fw-allow',
      '4',
      { concat: ['192.0.2.1', 'tcp', 80, { prefix: { addr: '10.1.9.0', len: 24 } }] },
      'fw-allow4 192.0.2.1 . tcp . 80 . 10.1.9.0/24',
      '',
    ],
    ['fw-allow', '6', { concat: ['::1', 'udp', 80, 'fd00::1'] }, 'fw-allow6 ::1 . udp . 80 . fd00::1/128', ''],
  ] as const)('%s%s %j is %s', (object, suffix, listed, id, data) => {
    expect(parseElements(object, suffix, [listed])).toEqual([{ id, data }]);
  });

  test.each([
    ['cluster-ips', { range: ['10.0.0.1', '10.0.0.9'] }],
    ['frontends', [{ concat: ['10.0.0.1', 'tcp'] }, '30:1']],
    ['frontends', [{ concat: ['10.0.0.1', 'dccp', 80] }, '30:1']],
    ['frontends', [{ concat: ['10.0.0.1', 'tcp', '80'] }, '30:1']],
    ['nodeports', [{ concat: ['tcp', 80] }, 'root']],
  ] as const)('%s %j is refused, not guessed', (object, listed) => {
    expect(() => parseElements(object, '4', [listed])).toThrow('cannot read an element');
  });
});

describe('parseCounters', () => {
  const counter = (packets: number): unknown => ({ packets, bytes: packets * 60 });
  test.each([
    [
      'frontends',
      [{ elem: { val: { concat: ['172.30.0.1', 'tcp', 80] }, counter: counter(3) } }, '30:1'],
      '172.30.0.1 . tcp . 80',
      3,
    ],
    ['nodeports', [{ elem: { val: { concat: ['udp', 30053] }, counter: counter(0) } }, '30:1'], 'udp . 30053', 0],
    ['drops-source', { elem: { val: '0:1f', counter: counter(7) } }, '0x1f', 7],
  ] as const)('%s %j', (object, listed, key, packets) => {
    expect([...parseCounters(object, [listed])]).toEqual([[key, packets]]);
  });

  test('an element without a counter is none of ours', () => {
    expect(() => parseCounters('drops-source', ['0:1'])).toThrow('cannot read an element');
  });
});

test('parseIntervals gives CIDRs, sorted', () => {
  const listed = [
    { prefix: { addr: '192.0.2.0', len: 24 } },
    '10.0.0.1',
    'fd00::1',
    { prefix: { addr: '0.0.0.0', len: 0 } },
  ];
  expect(parseIntervals('pod-cidrs', listed)).toEqual(['0.0.0.0/0', '10.0.0.1/32', '192.0.2.0/24', 'fd00::1/128']);
});

test('a range in an interval set is something we never write', () => {
  const listed = [{ range: ['10.0.0.1', '10.0.0.9'] }];
  expect(parseIntervals('pod-cidrs', listed)).toEqual(['{"range":["10.0.0.1","10.0.0.9"]}']);
});

test('parseIntervals gives names of interfaces in quotes, also one that looks like an address', () => {
  expect(parseIntervals('pod-interfaces', ['veth*', '10.0.0.1', 'cni0'])).toEqual(['"10.0.0.1"', '"cni0"', '"veth*"']);
});

describe('NftClient', () => {
  test.each<[string, NftRefusal]>([
    ['/dev/stdin:1:42-62: Error: Could not process rule: File exists', 'exists'],
    ['/dev/stdin:1:45-65: Error: Could not process rule: No such file or directory', 'missing'],
    ['Error: Could not process rule: Operation not permitted', 'permission'],
    ['Error: syntax error, unexpected colon', 'other'],
  ])('%s is %s', async (line, refusal) => {
    const runner = new ScriptedRunner([
      {
        file: 'nft',
        args: ['-f', '-'],
        stdin: 'x',
        answer: { exitCode: 1, stderr: `${noise}${line}\nadd element …\n` },
      },
    ]);
    const error: unknown = await createNftClient(runner)
      .apply('cannot try', 'x', signal)
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(NftError);
    expect((error as NftError).refusal).toBe(refusal);
    expect((error as NftError).message).toBe(
      `cannot try: nft exited with 1 and said: ${line}; nothing of it took effect`,
    );
  });

  test('an empty script runs nothing', async () => {
    await createNftClient(new ScriptedRunner([])).apply('cannot try', '', signal);
  });

  test.each([
    [true, 'that is there, with noise on stderr', { stdout: '{"nftables": []}', stderr: noise }],
    [false, 'that is not there', { exitCode: 1, stderr: 'Error: No such file or directory\n' }],
  ])('it is %s to have a table %s', async (expected, _, answer) => {
    const runner = new ScriptedRunner([{ file: 'nft', args: ['-j', '-t', 'list', 'table', 'inet', 't'], answer }]);
    expect(await createNftClient(runner).hasTable('t', signal)).toBe(expected);
  });

  test('a listing that is refused is an error, not an absence', async () => {
    const answer = { exitCode: 1, stderr: 'Operation not permitted (you must be root)\n' };
    const runner = new ScriptedRunner([{ file: 'nft', args: ['-j', '-t', 'list', 'table', 'inet', 't'], answer }]);
    await expect(createNftClient(runner).hasTable('t', signal)).rejects.toThrow('you must be root');
  });

  test('an object that is not there has no elements', async () => {
    const answer = { exitCode: 1, stderr: 'Error: No such file or directory\n' };
    const runner = new ScriptedRunner([{ file: 'nft', args: ['-j', 'list', 'set', 'inet', 't', 'x'], answer }]);
    expect(await createNftClient(runner).elements({ table: 't', kind: 'set', name: 'x' }, signal)).toBeUndefined();
  });

  test.each(['', 'not json', '{"other":1}'])('output %j is no empty listing', async (stdout) => {
    const runner = new ScriptedRunner([
      { file: 'nft', args: ['-j', 'list', 'table', 'inet', 't'], answer: { stdout } },
    ]);
    await expect(createNftClient(runner).objects('t', signal)).rejects.toThrow('cannot read the listing');
  });
});
