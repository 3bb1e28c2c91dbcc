import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigFolder } from '../config/testing/config-folder.ts';
import { flags } from '../config/flags/table.ts';
import { kubeProxySchema } from '../config/schema/kube-proxy-fields.ts';
import { switchyardSchema } from '../config/schema/switchyard-fields.ts';
import { configReference } from './config-reference.ts';
import { flagsReference } from './flags-reference.ts';
import { stalePages, writePages } from './generate.ts';
import { countText } from './markdown.ts';

test('the pages in docs/generated are fresh; else run: nx run node-agent:generate', async () => {
  expect(await stalePages()).toEqual([]);
});

describe('writing pages', () => {
  test('writes what is missing or stale, and leaves the rest', async () => {
    await using folder = await ConfigFolder.create();
    await folder.write('b.md', 'b\n');
    const all = [
      { path: 'new/a.md', text: () => 'a\n' },
      { path: 'b.md', text: () => 'b\n' },
    ];
    expect(await stalePages(all, folder.path)).toEqual(['new/a.md']);
    expect(await writePages(all, folder.path)).toEqual(['new/a.md']);
    expect(await readFile(join(folder.path, 'new/a.md'), 'utf8')).toBe('a\n');
    expect(await stalePages(all, folder.path)).toEqual([]);
  });
});

test('a flag whose field depends on the mode names both fields, and the default where no mode is said', () => {
  expect(flagsReference()).toContain(
    '| `--iptables-min-sync-period DURATION` | `1s` |  | `iptables.minSyncPeriod`, in the other modes `nftables.minSyncPeriod` |',
  );
});

test('counts in a sentence leave out kinds without any', () => {
  const why = 'it has no meaning';
  expect(countText([{ kind: 'same' }, { kind: 'ignored', why }, { kind: 'same' }])).toBe(
    '3 in all: 2 same, 1 accepted without effect',
  );
});

test.each(flags.map(({ name }) => name))('flags.md has --%s', (name) => {
  expect(flagsReference()).toMatch(new RegExp(`^\\| \`--?${name}[\` ]`, 'm'));
});

test.each([...kubeProxySchema.fields, ...switchyardSchema.fields].map(({ path }) => path))(
  'config.md has %s',
  (path) => {
    expect(configReference()).toContain(`| \`${path}\` |`);
  },
);

test.each([
  ['a field without effect has its reason', /\| `nftables\.masqueradeBit` .* \| ignored: our rules need no bit/],
  ['a field that is refused says which values', /\| `mode` .*\*\*partly refused\*\*: takes iptables \(default/],
  ['a field that applies at once says so', /\| `clusterCIDR` .* \| at once \|/],
  ['a field that needs a restart says so', /\| `oomScoreAdj` .* \| restart \|/],
  ['defaults are as in a file', /\| `conntrack\.tcpEstablishedTimeout` \| duration \| `24h0m0s` \|/],
  [
    'a gate has its stages, defaults and lock by release',
    /\| `NFTablesProxyMode` \| alpha 1\.29, beta 1\.31, GA 1\.33 \| off, on since 1\.31 \| 1\.33 \| {2}\|/,
  ],
  [
    'a removed gate says in which release',
    /\| `TopologyAwareHints` \| alpha 1\.21, beta 1\.23, GA 1\.33 \| off, on since 1\.24 \| 1\.33 \| 1\.36 \|/,
  ],
])('config.md: %s', (_, expected) => {
  expect(configReference()).toMatch(expected);
});
