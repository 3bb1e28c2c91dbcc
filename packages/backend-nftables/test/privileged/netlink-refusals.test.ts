import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Change } from '../../src/render/elements.ts';
import type { NftError } from '../../src/kernel/nft-error.ts';
import { added, classes, contents, NetlinkSite, table } from './netlink-site.ts';
import { signal } from './support.ts';

let site: NetlinkSite;
const write = (changes: readonly Change[]): Promise<void> => site.write(changes);

beforeAll(async () => {
  site = await NetlinkSite.create('nfto');
});

afterAll(() => site[Symbol.asyncDispose]());

beforeEach(() => site.reset());

/** EPERM is not here: these tests run as root, and root is allowed to. The unit tests have it. */
describe('a refusal names the change at fault, and nothing of the transaction stays', () => {
  const five = (kind: 'add' | 'delete'): readonly Change[] =>
    [1, 2, 3, 4, 5].map((last) => {
      const id = `frontends4 10.96.0.${last} . tcp . 80`;
      return kind === 'add' ? { kind, id, data: '0x1' } : { kind, id };
    });

  test.each<[string, readonly Change[], readonly Change[], NftError['refusal'], string]>([
    [
      'other data under the third key',
      [added('frontends4 10.96.0.3 . tcp . 80', '0x2')],
      five('add'),
      'exists',
      'EEXIST when it was to add 10.96.0.3 . tcp . 80 : 0x1 to frontends4',
    ],
    [
      'a third element that is not there',
      five('add').filter((_, index) => index !== 2),
      five('delete'),
      'missing',
      'ENOENT when it was to delete 10.96.0.3 . tcp . 80 from frontends4',
    ],
    [
      'a third source range within another one that is there',
      [added('fw-allow4 192.0.2.3 . tcp . 80 . 10.0.0.0/8')],
      [1, 2, 3, 4, 5].map((last) => added(`fw-allow4 192.0.2.${last} . tcp . 80 . 10.0.0.0/9`)),
      'exists',
      'EEXIST when it was to add 192.0.2.3 . tcp . 80 . 10.0.0.0/9 to fw-allow4',
    ],
  ])('%s', async (_, before, changes, kind, words) => {
    await write(before);
    const state = await contents(site.netlink);
    const error = await site.refusal([added('cluster-ips4 10.96.0.77'), ...changes, added('cluster-ips4 10.96.0.78')]);
    expect(error.change).toBe(changes[2]);
    expect(error.refusal).toBe(kind);
    expect(error.message).toContain(words);
    expect(await contents(site.netlink)).toEqual(state);
  });

  test('CIDRs that overlap', async () => {
    const change: Change = { kind: 'replace', object: 'pod-cidrs4', content: ['10.0.0.0/9', '10.0.0.0/10'] };
    const error = await site.refusal([added('cluster-ips4 10.96.0.77'), change]);
    expect([error.refusal, error.change]).toEqual(['exists', change]);
    expect(await site.netlink.readElements({ table, object: 'cluster-ips', suffix: '4' }, signal)).toEqual([]);
  });

  test('a class that has its chain already', async () => {
    await write(classes);
    const error = await site.refusal([added('cluster-ips4 10.96.0.77'), ...classes]);
    expect(error.message).toContain('EEXIST about lb4-300 of table inet switchyard');
    expect(error.refusal).toBe('exists');
    expect((await site.nft('list', 'chain', 'inet', table, 'lb4-300')).match(/random mod 300/g)).toHaveLength(1);
  });

  test('a table that is not there', async () => {
    const error = await site.refusal(five('add'), 'switchyard-2');
    expect(error.message).toContain('ENOENT about table inet switchyard-2: there is no such table');
    expect([error.refusal, error.change]).toEqual(['missing', undefined]);
  });

  test('a map that is not there', async () => {
    await site.nft('add', 'table', 'inet', 'switchyard-2');
    const error = await site.refusal(five('add'), 'switchyard-2');
    expect(error.message).toContain('ENOENT about frontends4 of table inet switchyard-2: it does not exist');
    expect([error.refusal, error.change]).toEqual(['missing', undefined]);
  });

  test('a set that is full, with the first element that did not fit', async () => {
    await site.nft('table inet switchyard-2 { set cluster-ips4 { type ipv4_addr; size 2; }; }');
    const changes = [1, 2, 3, 4, 5].map((last) => added(`cluster-ips4 10.96.0.${last}`));
    const error = await site.refusal(changes, 'switchyard-2');
    expect(error.message).toContain('ENFILE when it was to add 10.96.0.3 to cluster-ips4: it is full');
    expect([error.refusal, error.change]).toEqual(['other', changes[2]]);
  });

  test('a set of another type', async () => {
    await site.nft('table inet switchyard-2 { set cluster-ips4 { type ipv6_addr; }; }');
    const error = await site.refusal([added('cluster-ips4 10.96.0.1')], 'switchyard-2');
    expect(error.message).toContain('EINVAL when it was to add 10.96.0.1 to cluster-ips4: it does not fit');
  });
});
