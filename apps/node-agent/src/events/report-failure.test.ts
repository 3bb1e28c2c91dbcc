import { ConfigError, HostError, nodeName, type RecordedEvent } from '@switchyard/core';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FailureChannels, reportFailure, terminationLogOf } from './agent-events.ts';

const place = { source: { kind: 'inCluster', env: {} }, nodeName: nodeName('n1') } as const;
const failure = { error: new HostError('host.unusable', 'no nftables'), text: 'no nftables' };

let folder: string;
let terminationLog: string;
let sent: RecordedEvent[];
let waiting: RecordedEvent[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchyard-failure-'));
  terminationLog = join(folder, 'termination-log');
  await writeFile(terminationLog, '');
  sent = [];
  waiting = [];
});

afterEach(() => rm(folder, { recursive: true }));

function channels(changes: Partial<FailureChannels> = {}): FailureChannels {
  const openEvents: FailureChannels['openEvents'] = async () => ({
    record: (event) => void waiting.push(event),
    [Symbol.asyncDispose]: async () => void sent.push(...waiting),
  });
  return { terminationLog, place, openEvents, hasForwarded: false, ...changes };
}

const written = (): Promise<string> => readFile(terminationLog, 'utf8');

test('a failed start is the termination message, and a Warning of the Node that is sent before the end', async () => {
  await reportFailure(failure, channels());
  expect(await written()).toBe('no nftables');
  expect(sent).toEqual([
    {
      type: 'Warning',
      reason: 'SwitchyardStartFailed',
      action: 'StartKubeProxy',
      regarding: { kind: 'Node', namespace: '', name: 'n1', uid: '' },
      note: 'no nftables',
    },
  ]);
});

test('an agent that had written rules did not fail to start', async () => {
  await reportFailure(failure, channels({ hasForwarded: true }));
  expect(sent).toMatchObject([{ reason: 'SwitchyardFailed' }]);
});

test('a restart in another configuration is a termination message, and no Event', async () => {
  const error = new ConfigError('config.changed', 'mode: iptables -> nftables');
  await reportFailure({ error, text: error.message }, channels());
  expect(await written()).toBe('mode: iptables -> nftables');
  expect(sent).toEqual([]);
});

test('an unknown cluster, and one that cannot be reached, leave the termination message', async () => {
  await reportFailure(failure, channels({ place: undefined }));
  expect(await written()).toBe('no nftables');
  await writeFile(terminationLog, '');
  const openEvents = () => Promise.reject(new ConfigError('config.kubeconfig', 'no kubeconfig'));
  await reportFailure(failure, channels({ openEvents }));
  expect(await written()).toBe('no nftables');
});

test('the file is kubelet’s, unless the environment names another', () => {
  expect(terminationLogOf({})).toBe('/dev/termination-log');
  expect(terminationLogOf({ SWITCHYARD_TERMINATION_LOG: '/run/why' })).toBe('/run/why');
});
