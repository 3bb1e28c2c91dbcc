import { noopLogger } from '@switchyard/core';
import { situation, there } from '@switchyard/core/testing';
import { createLab, type Lab, type LabNode } from '@switchyard/lab';
import { openNetlinkSocket } from '@switchyard/native';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { RulesReader } from '@switchyard/netfilter';
import { createNetlinkTransport } from '../../src/kernel/netlink/netlink-transport.ts';
import { printTable } from '../../src/testing/print-table.ts';
import { marksOf } from '../../src/kernel/rule-marks.ts';
import { RulesGuard } from '../../src/watch/rules-guard.ts';
import { skeleton } from '../../src/render/skeleton.ts';
import { Kernel, signal } from './support.ts';

let lab: Lab;
let byNft: LabNode;
let byNetlink: LabNode;
const table = 'switchyard';

beforeAll(async () => {
  lab = await createLab({ name: 'nftr', nodes: 2, ipFamilies: ['IPv4', 'IPv6'] }, signal);
  [byNft, byNetlink] = lab.nodes as [LabNode, LabNode];
});

afterAll(() => lab[Symbol.asyncDispose]());

beforeEach(async () => {
  for (const node of [byNft, byNetlink]) await nft(node, ['flush', 'ruleset']);
});

async function nft(node: LabNode, args: readonly string[], stdin = ''): Promise<string> {
  const result = await node.run('nft', args, { stdin });
  expect(result.exitCode, result.stderr).toBe(0);
  return result.stdout;
}

const netnsOf = (node: LabNode): string => `/run/netns/${node.namespace}`;

/** As releases before netlink rules did. */
async function loadByNft(node: LabNode): Promise<void> {
  await nft(node, ['-f', '-'], printTable(skeleton(table)));
  using guard = new RulesGuard({ netns: netnsOf(node), logger: noopLogger });
  guard.mark(table);
}

async function loadByNetlink(node: LabNode): Promise<void> {
  await using transport = createNetlinkTransport({ netns: netnsOf(node) });
  await transport.loadRules('cannot load', skeleton(table), signal);
}

function marksIn(node: LabNode): readonly string[] {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns: netnsOf(node), receiveBuffer: 1 << 20 });
  const reader = new RulesReader(socket, { attempt: 'cannot read the rules', code: 'nftables' });
  const rules = reader.read(table);
  expect(rules?.rules.length).toBeGreaterThan(300);
  const classes = ['lb4-classes', 'lb6-classes'].flatMap((map) =>
    (reader.elements(table, map) ?? []).map((element) => ({ map, element })),
  );
  return [...marksOf({ ...rules!, classes })].sort();
}

test('the rules over netlink are the rules by nft: in every listing, and as the kernel shows them', async () => {
  await nft(byNft, ['-f', '-'], printTable(skeleton(table)));
  await loadByNetlink(byNetlink);
  for (const args of [
    ['list', 'ruleset'],
    ['-j', 'list', 'ruleset'],
    ['-n', '-a', 'list', 'chains'],
  ]) {
    expect(withoutHandles(await nft(byNetlink, args))).toBe(withoutHandles(await nft(byNft, args)));
  }
  expect(marksIn(byNetlink)).toEqual(marksIn(byNft));
});

/** Numbers of objects, which follow the order of messages. */
function withoutHandles(listing: string): string {
  return listing.replaceAll(/"handle": \d+|# handle \d+/g, '');
}

test('what a release loaded by nft is adopted: not one write', async () => {
  const wanted = situation({ cart: { endpoints: [there('10.244.2.1')] } });
  await loadByNft(byNft);
  const first = await Kernel.open(byNft);
  expect(await first.full(wanted)).toMatchObject({ status: 'applied' });
  expect(await (await Kernel.open(byNft)).full(wanted)).toEqual({ status: 'applied', writes: 0 });
  expect(await nft(byNft, ['list', 'tables'])).toBe(`table inet ${table}\n`);
});

test('a table that is there is not loaded over', async () => {
  await loadByNetlink(byNetlink);
  await expect(loadByNetlink(byNetlink)).rejects.toMatchObject({ refusal: 'exists' });
});
