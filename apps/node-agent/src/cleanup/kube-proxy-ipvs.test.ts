import { CommandError, type KernelFiles } from '@switchyard/host';
import { type ScriptedCommand, ScriptedRunner } from '@switchyard/host/testing';
import { describe, expect, test } from 'vitest';
import { removeKubeProxyIpvs } from './kube-proxy.ts';
import type { Removal } from './removal.ts';

const { signal } = new AbortController();
const devices = 'Inter-|   Receive\n face |bytes\n    lo: 0 0\nkube-ipvs0: 0 0';

async function remove(dev: string, ...commands: readonly ScriptedCommand[]): Promise<Removal> {
  const runner = new ScriptedRunner(commands);
  const files: KernelFiles = { read: () => dev, write: () => undefined };
  const removal = await removeKubeProxyIpvs({ runner, files }, signal);
  runner.assertDone();
  return removal;
}

const missing = (file: string): CommandError =>
  new CommandError('notFound', `cannot run ${file}: no such program in PATH; install it`, { file, args: [] });
const command = (line: string, answer: ScriptedCommand['answer'] = {}): ScriptedCommand => {
  const [file = '', ...args] = line.split(' ');
  return { file, args, answer };
};

describe('what the ipvs mode left', () => {
  test('is removed: its virtual servers, its interface, its ipsets; not those of others', async () => {
    const addresses =
      '3: kube-ipvs0    inet 10.96.0.1/32 scope global kube-ipvs0\n3: kube-ipvs0    inet6 fd00::1/128 scope global\n';
    const servers =
      '-A -t 10.96.0.1:443 -s rr\n-a -t 10.96.0.1:443 -r 10.0.0.5:6443 -m -w 1\n-A -t [fd00::1]:443 -s rr\n-A -u 192.0.2.9:53 -s wrr\n';
    const sets =
      'KUBE-CLUSTER-IP\nKUBE-6-CLUSTER-IP\nKUBE-NODE-PORT-LOCAL-SCTP-HASH\nKUBE-SRC-ABCDEFGHIJKLMNOP\nsite-set\n';
    const removal = await remove(
      devices,
      command('ip -o address show dev kube-ipvs0', { stdout: addresses }),
      command('ipvsadm -S -n', { stdout: servers }),
      command('ipvsadm -D -t 10.96.0.1:443'),
      command('ipvsadm -D -t [fd00::1]:443'),
      command('ip link delete kube-ipvs0'),
      command('ipset list -n', { stdout: sets }),
      command('ipset destroy KUBE-CLUSTER-IP'),
      command('ipset destroy KUBE-6-CLUSTER-IP'),
      command('ipset destroy KUBE-NODE-PORT-LOCAL-SCTP-HASH'),
    );
    expect(removal).toEqual({
      removed: [
        'ipvs virtual server 10.96.0.1:443',
        'ipvs virtual server [fd00::1]:443',
        'interface kube-ipvs0',
        'ipset KUBE-CLUSTER-IP',
        'ipset KUBE-6-CLUSTER-IP',
        'ipset KUBE-NODE-PORT-LOCAL-SCTP-HASH',
      ],
      kept: [],
      skipped: [],
      failures: [],
    });
  });

  test('without its interface only ipsets are looked for', async () => {
    expect((await remove('lo: 0', command('ipset list -n'))).removed).toEqual([]);
  });

  test('what needs a program that is not installed is named, and the rest is done', async () => {
    const removal = await remove(
      devices,
      command('ip -o address show dev kube-ipvs0'),
      command('ipvsadm -S -n', missing('ipvsadm')),
      command('ip link delete kube-ipvs0'),
      command('ipset list -n', missing('ipset')),
    );
    expect(removal.removed).toEqual(['interface kube-ipvs0']);
    expect(removal.skipped).toEqual([
      'ipvs mode: ipvsadm: no such program in PATH; install it',
      'ipvs mode: ipset: no such program in PATH; install it',
    ]);
  });

  test('what is refused is a failure that says what came back, and the rest is done', async () => {
    const removal = await remove(
      'lo: 0',
      command('ipset list -n', { stdout: 'KUBE-CLUSTER-IP\n' }),
      command('ipset destroy KUBE-CLUSTER-IP', { exitCode: 1, stderr: 'Set cannot be destroyed: it is in use' }),
    );
    expect(removal.failures.map(({ message }) => message)).toEqual([
      'cannot remove what the ipvs mode of kube-proxy left: ipset exited with 1 and said: Set cannot be destroyed: it is in use',
    ]);
  });
});
