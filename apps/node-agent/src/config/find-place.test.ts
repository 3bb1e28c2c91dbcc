import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asksForCommand, findPlace, loadConfig } from '../config.ts';
import { ConfigFolder } from './testing/config-folder.ts';
import { kubeadmFile } from './testing/kubeadm-file.ts';

const inPod = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };

let folder: ConfigFolder;

beforeEach(async () => {
  folder = await ConfigFolder.create();
});

afterEach(() => folder[Symbol.asyncDispose]());

describe('the cluster and Node of a refused command line', () => {
  test('a file with a mode that is refused: its kubeconfig, and the Node of the flag', async () => {
    const file = await folder.write('config.conf', kubeadmFile.replace('mode: ""', 'mode: ipvs'));
    const args = [`--config=${file}`, '--hostname-override=Node1'];
    await expect(loadConfig(args)).rejects.toThrow('"ipvs"');
    expect(await findPlace(args, inPod)).toEqual({
      nodeName: 'node1',
      source: { kind: 'kubeconfig', file: '/var/lib/kube-proxy/kubeconfig.conf', server: undefined },
    });
  });

  test.each([
    ['a file that is missing', ['--config=/missing/config.conf', '--hostname-override=n1']],
    ['an unknown flag', ['--bogus', '--hostname-override=n1']],
    ['a flag with a bad value', ['--healthz-port=many', '--hostname-override=n1']],
  ])('%s: the pod’s own API server', async (_what, args) => {
    await expect(loadConfig(args)).rejects.toThrow();
    expect(await findPlace(args, inPod)).toMatchObject({ nodeName: 'n1', source: { kind: 'inCluster' } });
  });

  test('an unknown flag beside a kubeconfig: that one', async () => {
    const args = ['--bogus', 'value', '--kubeconfig=/k', '--hostname-override=n1'];
    expect(await findPlace(args, {})).toMatchObject({ source: { kind: 'kubeconfig', file: '/k' } });
  });

  test('a master that is no URL, and nothing else: unknown', async () => {
    expect(await findPlace(['--master=:'], {})).toBeUndefined();
  });
});

test.each([
  [['--cleanup'], true],
  [['--config=x', '--switchyard-dump'], true],
  [['--switchyard_dump=true'], true],
  [['--version'], true],
  [['-h'], true],
  [['--config=x', '--init-only'], false],
  [['--hostname-override=n1'], false],
  [[], false],
])('%j runs a command: %s', (args, expected) => {
  expect(asksForCommand(args)).toBe(expected);
});
