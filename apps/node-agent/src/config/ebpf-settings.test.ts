import { expect, test } from 'vitest';
import { type Config, loadConfig, parseConfig } from '../config.ts';
import type { EbpfConfig } from './run-config.ts';
import { configzDocument } from './documents.ts';
import { ConfigFolder } from './testing/config-folder.ts';

const defaults: EbpfConfig = {
  cgroup: undefined,
  bpffs: '/sys/fs/bpf',
  interfaces: [],
  northSouth: 'auto',
  socketLb: 'all',
};

const run = (...args: readonly string[]): Config => parseConfig(['--kubeconfig=/k', '--proxy-mode=ebpf', ...args], {});

test.each<readonly [string, Partial<EbpfConfig>]>([
  ['--proxy-mode=ebpf', {}],
  ['--switchyard-ebpf-cgroup=/run/switchyard/cgroup', { cgroup: '/run/switchyard/cgroup' }],
  ['--switchyard-ebpf-cgroup=', {}],
  ['--switchyard-ebpf-bpffs=/run/switchyard/bpf', { bpffs: '/run/switchyard/bpf' }],
  ['--switchyard-ebpf-interfaces=eth0,bond*', { interfaces: ['eth0', 'bond*'] }],
  ['--switchyard-ebpf-north-south=nftables', { northSouth: 'nftables' }],
  ['--switchyard-ebpf-socket-lb=host', { socketLb: 'host' }],
])('%s changes nothing else', (flag, expected) => {
  expect(run(flag)).toMatchObject({ kind: 'run', mode: 'ebpf', ebpf: { ...defaults, ...expected }, notes: [] });
});

test('each has a field in our own file, over which its flag wins', async () => {
  await using folder = await ConfigFolder.create();
  const text = `apiVersion: switchyard.dev/v1alpha1
kind: SwitchyardConfiguration
ebpf: { cgroup: /c, bpffs: /b, interfaces: [eth1], northSouth: nftables, socketLB: host }
`;
  const file = await folder.write('switchyard.yaml', text);
  const args = ['--kubeconfig=/k', '--proxy-mode=ebpf', `--switchyard-config=${file}`, '--switchyard-ebpf-bpffs=/d'];
  expect(await loadConfig(args, {})).toMatchObject({
    ebpf: { cgroup: '/c', bpffs: '/d', interfaces: ['eth1'], northSouth: 'nftables', socketLb: 'host' },
  });
});

test.each([
  ['--switchyard-ebpf-cgroup=sys/fs/cgroup', /must be an absolute path, such as \/sys\/fs\/bpf/],
  ['--switchyard-ebpf-bpffs=bpf', /ebpf\.bpffs \(--switchyard-ebpf-bpffs\): .* must be an absolute path/],
  ['--switchyard-ebpf-interfaces=eth0,a/b', /\[1\] cannot be the name of an interface, such as eth0 or bond\*: /],
  ['--switchyard-ebpf-interfaces=eth0,,', /\[1\] cannot be the name of an interface.*: it is empty/],
  ['--switchyard-ebpf-north-south=xdp', /must be one of auto, tc, nftables/],
  ['--switchyard-ebpf-socket-lb=off', /must be one of all, host/],
] as const)('%s is refused, in any mode', (flag, message) => {
  expect(() => run(flag)).toThrow(message);
  expect(() => run(flag, '--proxy-mode=nftables')).toThrow(message);
});

test('sockets of the host alone and no rules for pods are refused, where the mode reads it', () => {
  const args = ['--switchyard-ebpf-socket-lb=host', '--switchyard-ebpf-north-south=tc'];
  expect(() => run(...args)).toThrow(/ebpf\.socketLB .*"host": needs rules for pods, .* use auto or nftables there/);
  expect(run(...args, '--proxy-mode=nftables')).toMatchObject({ mode: 'nftables' });
  expect(run('--switchyard-ebpf-north-south=tc')).toMatchObject({ ebpf: { northSouth: 'tc' } });
});

test('the effective configuration shows all of them, given or not', () => {
  const config = run('--switchyard-ebpf-interfaces=eth0,bond*', '--switchyard-ebpf-socket-lb=host');
  if (config.kind !== 'run') throw new Error('not a run');
  expect(configzDocument(config.settings)['switchyard.dev']).toMatchObject({
    ebpf: { bpffs: '/sys/fs/bpf', cgroup: '', interfaces: ['eth0', 'bond*'], northSouth: 'auto', socketLB: 'host' },
  });
});

test('in another mode they are reported to have no effect', () => {
  const config = run('--proxy-mode=nftables', '--switchyard-ebpf-socket-lb=host');
  expect(config).toMatchObject({
    mode: 'nftables',
    notes: [
      {
        message: 'setting has no effect',
        fields: { setting: 'ebpf.socketLB', why: 'only the ebpf mode reads it, and the mode is nftables' },
      },
    ],
  });
});
