import { expect, test } from 'vitest';
import { flags } from '../../../src/config/flags/table.ts';
import { kubeProxySchema } from '../../../src/config/schema/kube-proxy-fields.ts';
import { switchyardSchema } from '../../../src/config/schema/switchyard-fields.ts';
import { configReference } from './config-reference.ts';
import { flagsReference } from './flags-reference.ts';
import { countText } from './meaning-text.ts';
import { metricsReference } from './metrics-reference.ts';
import { parityPage } from './parity/page.ts';

test.each([
  ['docs/reference/config.md', configReference],
  ['docs/reference/flags.md', flagsReference],
  ['docs/reference/metrics.md', metricsReference],
  ['docs/reference/kube-proxy-parity.md', parityPage],
])('%s is fresh; else run: nx run node-agent:generate', async (path, page) => {
  await expect(page()).toMatchFileSnapshot(`../../../../../${path}`);
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
  [
    'a field without effect has its reason',
    /\| `nftables\.masqueradeBit` .* \| ignored: the rules of this mode use no bit/,
  ],
  ['a field that is refused says which values', /\| `mode` .*\*\*partly refused\*\*: accepts iptables \(default/],
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
