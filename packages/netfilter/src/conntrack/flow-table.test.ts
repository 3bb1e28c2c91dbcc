import { ManualClock, settle } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { ScriptedSocket, type Scripted } from '@switchyard/native/testing';
import { createFlowTable, type FlowQuery, type FlowTableOptions } from './flow-table.ts';
import type { TrackedFlow } from './flow-reader.ts';

const { signal } = new AbortController();
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'));
const join = (...parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(Buffer.concat(parts));

/** Recorded on kernel 6.18, x64. */
const recorded = {
  request: '1400000005010100010000000000000000000000',
  five: bytesOf('240000000501020001000000c02100000000000008000100000000050800020000040000'),
  /** udp 172.18.0.100:40001 -> 172.18.0.11:53, answered by 10.244.1.2:8080 */
  translated:
    bytesOf(`a40000000001020001000000c021000002000000340001801400018008000100ac12006408000200ac12000b1c00028005000100
    11000000060002009c41000006000300003500003400028014000180080001000af4010208000200ac1200641c000280050001001100000006000200
    1f900000060003009c41000008000300000001aa080008000000000008000c00a9c3275108000b0000000001080007000000001d`),
  /** udp 172.18.0.100:40002 -> 172.18.0.11:5309 in zone 7 */
  zoned:
    bytesOf(`ac0000000001020001000000c021000002000000340001801400018008000100ac12006408000200ac12000b1c000280050001001100
    0000060002009c4200000600030014bd0000340002801400018008000100ac12000b08000200ac1200641c00028005000100110000000600020014bd
    0000060003009c42000006001200000700000800030000000188080008000000000008000c00b9b87bbc08000b0000000001080007000000001d`),
  /** tcp 172.18.0.100:40001 -> 172.18.0.11:53 */
  tcp: bytesOf(`d40000000001020001000000c021000002000000340001801400018008000100ac12006408000200ac12000b1c000280050001000600
    0000060002009c41000006000300003500003400028014000180080001000af4010208000200ac1200641c0002800500010006000000060002001f90
    0000060003009c41000008000300000001ae080008000000000008000c001de3fa6208000b00000000010800070000000009300004802c0001800500
    010008000000050002000a000000050003000a00000006000400230000000600050023000000`),
  /** udp [fd00:172:18::100]:40001 -> [fd00:172:18::11]:53, answered by [fd00:10:244:1::2]:8080 */
  six: bytesOf(`d40000000001020001000000c02100000a0000004c0001802c00018014000300fd00017200180000000000000000010014000400fd0001
    720018000000000000000000111c0002800500010011000000060002009c41000006000300003500004c0002802c00018014000300fd000010024400
    01000000000000000214000400fd0001720018000000000000000001001c0002800500010011000000060002001f900000060003009c410000080003
    00000001aa080008000000000008000c00d8f2fc8808000b0000000001080007000000001d`),
  done: bytesOf('140000000300020001000000c021000000000000'),
};
const noEntry = bytesOf('2400000002000001 01000000c0210000 feffffff 1000000002010100 0100000000000000');
const noPermission = bytesOf('2400000002000001 01000000c0210000 ffffffff 1000000001010103 0100000000000000');

/** As the kernel marks each message of a listing that it could not keep consistent. */
function interrupted(message: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(message);
  copy[6]! |= 0x10;
  return copy;
}

function bench(scripts: readonly (readonly Scripted[])[], options: Partial<FlowTableOptions> = {}) {
  const clock = new ManualClock();
  const sockets: ScriptedSocket[] = [];
  const table = createFlowTable({
    clock,
    open: (opened) => {
      const socket = new ScriptedSocket(opened, scripts[sockets.length] ?? []);
      sockets.push(socket);
      return socket;
    },
    ...options,
  });
  const list = async (query: FlowQuery, stop: AbortSignal = signal): Promise<readonly TrackedFlow[]> => {
    const found: TrackedFlow[] = [];
    for await (const part of table.list(query, stop)) found.push(...part);
    return found;
  };
  return { clock, sockets, table, list };
}

const all = join(recorded.translated, recorded.zoned, recorded.tcp, recorded.six);

describe('listing', () => {
  test('reads a flow of IPv4', async () => {
    const { list } = bench([[recorded.five, recorded.translated, recorded.done]]);
    expect(await list({ ipFamily: 'IPv4' })).toEqual([
      {
        ipFamily: 'IPv4',
        source: '172.18.0.100',
        sourcePort: 40_001,
        destination: '172.18.0.11',
        destinationPort: 53,
        replySource: '10.244.1.2',
        replySourcePort: 8080,
        id: 0xa9c32751,
        zone: 0,
        handle: join(recorded.translated.slice(72, 124), recorded.translated.slice(140, 148)),
      },
    ]);
  });

  test('reads a flow of IPv6', async () => {
    const { list } = bench([[recorded.five, recorded.six, recorded.done]]);
    expect(await list({ ipFamily: 'IPv6' })).toMatchObject([
      {
        source: 'fd00:172:18::100',
        destination: 'fd00:172:18::11',
        destinationPort: 53,
        replySource: 'fd00:10:244:1::2',
        replySourcePort: 8080,
      },
    ]);
  });

  test('reads an untranslated flow, and its zone', async () => {
    const { list } = bench([[recorded.five, recorded.zoned, recorded.done]]);
    expect(await list({ ipFamily: 'IPv4' })).toMatchObject([
      { destination: '172.18.0.11', destinationPort: 5309, replySource: '172.18.0.11', replySourcePort: 5309, zone: 7 },
    ]);
  });

  test.each<[string, FlowQuery, readonly number[]]>([
    ['UDP flows of the family', { ipFamily: 'IPv4' }, [40_001, 40_002]],
    ['UDP flows of the other family', { ipFamily: 'IPv6' }, [40_001]],
    ['a destination port', { ipFamily: 'IPv4', destinationPorts: new Set([5309]) }, [40_002]],
    ['no destination port', { ipFamily: 'IPv4', destinationPorts: new Set() }, []],
    ['a predicate for each', { ipFamily: 'IPv4', isWanted: (flow) => flow.replySourcePort === 8080 }, [40_001]],
  ])('picks %s out of everything', async (_, query, expected) => {
    const { list } = bench([[recorded.five, all, recorded.done]]);
    expect((await list(query)).map(({ sourcePort }) => sourcePort)).toEqual(expected);
  });

  test.each([
    [
      'with few entries the kernel filters',
      5,
      '02000000 10000180 0c000280 05000100 11000000 14001980 08000100 08000000 08000200 00000000',
    ],
    ['with many it is not asked to', 4, '00000000'],
  ])('%s', async (_, maxFiltered, request) => {
    const { list, sockets } = bench([[recorded.five, recorded.done]], { maxFiltered });
    await list({ ipFamily: 'IPv4' });
    expect(sockets[0]?.sent[0]).toBe(recorded.request);
    expect(sockets[0]?.sent[1]?.slice(32)).toBe(request.replaceAll(' ', ''));
  });

  test('lets the event loop run when it took too long, and closes its socket', async () => {
    const slow = new ManualClock();
    const { list, sockets } = bench([[recorded.five, recorded.translated, recorded.zoned, recorded.done]], {
      clock: { ...slowly(slow), sleep: slow.sleep.bind(slow) },
    });
    const found = list({ ipFamily: 'IPv4' });
    await settle();
    expect(sockets[0]?.left).toBe(2);
    await slow.advance(0);
    await slow.advance(0);
    expect((await found).length).toBe(2);
    expect(sockets[0]?.isClosed).toBe(true);
  });

  test('opens its socket in the network namespace it was given', async () => {
    const { list, sockets } = bench([[recorded.five, recorded.done]], { netns: '/run/netns/x' });
    await list({ ipFamily: 'IPv4' });
    expect(sockets[0]?.options).toEqual({ protocol: 'netfilter', netns: '/run/netns/x' });
  });

  test.each<[string, readonly Scripted[]]>([
    ['says so at the end', [recorded.translated, interrupted(recorded.done)]],
    ['says so on the way', [interrupted(recorded.translated), recorded.done]],
    ['loses datagrams', [recorded.translated, 'ENOBUFS']],
    ['falls silent', [recorded.translated, 'nothing']],
  ])('fact 69, improved: begins again on a new socket when the kernel %s', async (_, first) => {
    const { list, clock, sockets } = bench([
      [recorded.five, ...first],
      [recorded.five, recorded.translated, recorded.done],
    ]);
    const found = list({ ipFamily: 'IPv4' });
    await settle();
    await clock.advance(20);
    expect((await found).length).toBe(2); // the same one twice
    expect(sockets.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  test('gives up after four listings that were broken off', async () => {
    const broken: readonly Scripted[] = [recorded.five, 'ENOBUFS'];
    const { list, clock, sockets } = bench([broken, broken, broken, broken]);
    const found = list({ ipFamily: 'IPv4' });
    found.catch(() => undefined);
    for (let round = 0; round < 4; round++) await clock.advance(20);
    await expect(found).rejects.toThrow('cannot list the UDP flows (IPv4): the kernel broke off 4 listings in a row');
    expect(sockets).toHaveLength(4);
  });

  test('without permission it says what is missing', async () => {
    const { list, sockets } = bench([[recorded.five, noPermission]]);
    await expect(list({ ipFamily: 'IPv4' })).rejects.toThrow(
      'cannot list the UDP flows (IPv4): ctnetlink failed with EPERM; run with CAP_NET_ADMIN',
    );
    expect(sockets[0]?.isClosed).toBe(true);
  });

  test('ends with the reason of an abort, its socket closed', async () => {
    const stop = new AbortController();
    stop.abort(new Error('enough'));
    const { list, sockets } = bench([[recorded.five, recorded.done]]);
    await expect(list({ ipFamily: 'IPv4' }, stop.signal)).rejects.toThrow('enough');
    expect(sockets[0]?.isClosed).toBe(true);
  });
});

describe('deleting', () => {
  async function twoFlows(scripts: readonly Scripted[] = []) {
    const { list, table, sockets } = bench([
      [recorded.five, join(recorded.translated, recorded.zoned), recorded.done],
      scripts,
    ]);
    return { flows: await list({ ipFamily: 'IPv4' }), table, sockets };
  }

  test('names each flow by reply tuple, zone and id, all in one datagram', async () => {
    const { flows, table, sockets } = await twoFlows();
    expect(table.delete(flows)).toBe(2);
    const [translated, zoned] = flows.map(({ handle }) => Buffer.from(handle).toString('hex'));
    expect(sockets[1]?.sent).toEqual([
      `5000000002010100 0100000000000000 02000000 ${translated} 5800000002010100 0100000000000000 02000000 ${zoned}`.replaceAll(
        ' ',
        '',
      ),
    ]);
    expect(zoned).toContain('0600120000070000'); // the zone
    expect(sockets[1]?.isClosed).toBe(true);
  });

  test('a flow that has already ended does not count, and is no failure', async () => {
    const { flows, table } = await twoFlows([noEntry]);
    expect(table.delete(flows)).toBe(1);
  });

  test('any other answer is a failure', async () => {
    const { flows, table, sockets } = await twoFlows([noPermission]);
    expect(() => table.delete(flows)).toThrow('cannot delete a UDP flow: ctnetlink failed with EPERM');
    expect(sockets[1]?.isClosed).toBe(true);
  });

  test('of no flows opens no socket', async () => {
    const { table, sockets } = bench([]);
    expect(table.delete([])).toBe(0);
    expect(sockets).toEqual([]);
  });
});

/** Each look at the clock takes 5 ms. */
function slowly(clock: ManualClock): Pick<ManualClock, 'now' | 'monotonic'> {
  let looks = 0;
  return {
    now: () => clock.now(),
    monotonic: () => (clock.monotonic() + 5 * looks++) as ReturnType<ManualClock['monotonic']>,
  };
}
