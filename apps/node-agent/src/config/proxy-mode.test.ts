import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { type Config, loadConfig, parseConfig, type RunConfig } from '../config.ts';
import { settingChanges } from './config-follower.ts';
import { kubeadmFile } from './testing/kubeadm-file.ts';
import { toDocument } from './documents.ts';
import { ConfigFolder } from './testing/config-folder.ts';

async function run(text: string, ...args: readonly string[]): Promise<RunConfig> {
  await using folder = await ConfigFolder.create();
  const head = text.includes('kind:')
    ? ''
    : 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
  const file = await folder.write('config.conf', `${head}${text}\n`);
  const config: Config = await loadConfig([`--config=${file}`, ...args], {});
  if (config.kind !== 'run') throw new Error(`not a run: ${config.kind}`);
  return config;
}

test.each<readonly [string, string, Partial<RunConfig>]>([
  [
    'the iptables stanza, in its mode',
    'mode: iptables\niptables: { masqueradeAll: true, masqueradeBit: 0, localhostNodePorts: false, syncPeriod: 9s, minSyncPeriod: 2s }',
    {
      masqueradeAll: true,
      iptables: { variant: 'auto', masqueradeBit: 0, localhostNodePorts: false },
      syncPeriod: millis(9000),
      minSyncPeriod: millis(2000),
    },
  ],
  [
    'not the nftables stanza in the iptables mode',
    'mode: iptables\nnftables: { masqueradeAll: true, syncPeriod: -1s }',
    { masqueradeAll: false, syncPeriod: millis(30_000), minSyncPeriod: millis(1000) },
  ],
  [
    'not the iptables stanza in the nftables mode',
    'mode: nftables\niptables: { masqueradeAll: true, syncPeriod: 9s }',
    { masqueradeAll: false, syncPeriod: millis(30_000), minSyncPeriod: undefined },
  ],
  [
    "the nftables stanza in the ebpf mode, for which kube-proxy's file has none",
    'mode: ebpf\nnftables: { masqueradeAll: true, syncPeriod: 9s }\niptables: { minSyncPeriod: 7s }',
    {
      mode: 'ebpf',
      masqueradeAll: true,
      syncPeriod: millis(9000),
      minSyncPeriod: undefined,
      nodePortAddresses: { primary: true, cidrs: [], loopback: [] },
    },
  ],
])('what counts is %s', async (_, text, expected) => {
  expect(await run(text)).toMatchObject(expected);
});

test.each([
  [
    'iptables',
    'nftables: { masqueradeAll: true }',
    'nftables.masqueradeAll',
    'only the nftables and ebpf modes read it',
  ],
  ['nftables', 'iptables: { masqueradeBit: 3 }', 'iptables.masqueradeBit', 'only the iptables and ipvs modes read it'],
  ['ebpf', 'nftables: { masqueradeBit: 3 }', 'nftables.masqueradeBit', 'only the nftables mode reads it'],
  ['iptables', 'ipvs: { scheduler: lc }', 'ipvs.scheduler', 'only the ipvs mode reads it'],
] as const)('in the %s mode, %s is reported to have no effect', async (mode, text, setting, why) => {
  const { notes } = await run(`mode: ${mode}\n${text}`);
  expect(notes).toMatchObject([{ message: 'setting has no effect', fields: { setting } }]);
  expect(notes[0]?.fields['why']).toBe(`${why}, and the mode is ${mode}`);
});

test.each(['--switchyard-dump', '--cleanup'])(
  '%s is about every mode: nothing is reported to have no effect',
  (command) => {
    const config = parseConfig([command, '--switchyard-iptables-variant=nft'], {});
    expect(config).toMatchObject({ notes: [], iptables: { variant: 'nft' } });
  },
);

test.each([
  ['iptables', 'restart'],
  ['nftables', 'none'],
] as const)('in the %s mode, a changed mark bit is a change of class %s', async (mode, change) => {
  const [before, now] = await Promise.all([run(`mode: ${mode}`), run(`mode: ${mode}\niptables: { masqueradeBit: 3 }`)]);
  expect(settingChanges(before.settings, now.settings)).toEqual([
    { path: 'iptables.masqueradeBit', before: 14, now: 3, change },
  ]);
});

test("kubeadm's file loads as it is: its empty mode is iptables, which is all there is to say about it", async () => {
  const config = await run(kubeadmFile);
  expect(config.notes.map(({ message }) => message)).toEqual(['Using iptables proxy']);
  expect(config).toMatchObject({
    mode: 'iptables',
    iptables: { variant: 'auto', masqueradeBit: 14, localhostNodePorts: true },
    nodePortAddresses: { primary: false, cidrs: [], loopback: [] },
    minSyncPeriod: 1000,
    syncPeriod: 30_000,
  });
});

test.each([
  ['mode: ""', 'iptables', null],
  ['mode: iptables', 'iptables', null],
  ['mode: nftables', 'nftables', ['primary']],
  ['mode: ebpf', 'ebpf', ['primary']],
] as const)('%s is shown as what it comes to, as by kube-proxy', async (text, mode, nodePortAddresses) => {
  const { settings } = await run(text);
  expect(toDocument(settings.kubeProxy)).toMatchObject({ mode, nodePortAddresses });
});
