import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parsePeersOptions } from '../../bench/peers/options.ts';

const program = process.execPath;
const parse = (...args: readonly string[]) => parsePeersOptions(args, '/work');

test('a kube-proxy alone: all sizes and modes, with the API server of the lab', async () => {
  expect(await parse('--kube-proxy', program)).toEqual({
    kubeProxy: program,
    apiServer: undefined,
    sizes: [100, 1000, 5000],
    modes: ['nftables', 'iptables', 'ebpf'],
    rounds: 3,
    changes: 100,
    churn: 1000,
    burst: 500,
    connects: 1500,
    minSyncPeriod: 10,
    patience: 180_000,
    settle: 2000,
    json: undefined,
    markdown: undefined,
    machine: 'unknown machine',
  });
});

test('sizes, modes and files are what the flags say', async () => {
  const args = ['--kube-proxy', program, '--kube-apiserver', program, '--etcd', program];
  const options = await parse(...args, '--size', '20,50', '--mode=nftables', '--json', 'out.json');
  expect(options).toMatchObject({
    apiServer: { kubeApiserver: program, etcd: program },
    sizes: [20, 50],
    modes: ['nftables'],
    json: resolve('/work/out.json'),
  });
});

test.each([
  [[], '--kube-proxy FILE is missing: name the program to compare with'],
  [
    ['--kube-proxy', 'no/kube-proxy'],
    /^--kube-proxy: cannot run \/work\/no\/kube-proxy: ENOENT.*; name a program file$/,
  ],
  [['--kube-proxy', import.meta.filename], /^--kube-proxy: cannot run .*: EACCES/],
  [['--kube-proxy', import.meta.dirname], /^--kube-proxy: cannot run .*: it is no file/],
  [['--kube-proxy', program, '--etcd', program], '--kube-apiserver and --etcd need each other'],
  [
    ['--kube-proxy', program, '--kube-apiserver', program, '--etcd', '/missing/etcd'],
    /^--etcd: cannot run \/missing\/etcd/,
  ],
  [['--kube-proxy', program, '--size', '100,many'], '--size "many": must be a whole number'],
  [['--kube-proxy', program, '--mode', 'ipvs'], '--mode "ipvs": must be one of nftables, iptables, ebpf'],
  [['--kube-proxy', program, '--sizes', '1'], "Unknown option '--sizes'"],
])('%j is refused', async (args, message) => {
  await expect(parse(...args)).rejects.toThrow(message);
});
