import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openIptablesClient } from '../../src/testing/open-client.ts';
import type { IptablesClient } from '../../src/kernel/client/iptables-client.ts';
import { createNamespace, signal, type TestNamespace, variant } from './support.ts';

let namespace: TestNamespace;
let client: IptablesClient;
let holder: ChildProcess | undefined;
const text = '*nat\n:OURS - [0:0]\n-A OURS -j RETURN\nCOMMIT\n';
const nothing = { chain: () => undefined, rule: () => undefined };

beforeEach(async () => {
  namespace = await createNamespace();
  client = await openIptablesClient({ runner: namespace.runner, ipFamily: 'IPv4', variant }, signal);
});
afterEach(async () => {
  if (holder?.exitCode === null && holder.signalCode === null) {
    holder.kill();
    await once(holder, 'exit');
  }
  holder = undefined;
  await namespace[Symbol.asyncDispose]();
});

/** Holds the lock that the programs in the namespace look at, until killed or for some seconds. */
async function holdLock(seconds: number): Promise<void> {
  // By exec: one process that holds it and can be killed.
  const script = `exec 9>"$0"; flock 9; echo held; exec sleep ${seconds}`;
  holder = spawn('sh', ['-c', script, namespace.lockFile], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(holder.stdout!, 'data');
}

test('a lock that is given up in time is waited for', async () => {
  await holdLock(1);
  expect(await client.restore(text, signal)).toEqual({ status: 'done' });
  expect(await client.list('nat', 'OURS', signal)).toEqual([{ rule: '-j RETURN', packets: 0, bytes: 0 }]);
});

test('a lock that another holds all the time is worth another try; the nft variant has none', async () => {
  await holdLock(20);
  const result = await client.restore(text, signal);
  if (variant === 'nft') expect(result).toEqual({ status: 'done' });
  else expect(result).toMatchObject({ status: 'refused', line: undefined, isTransient: true });
});

test('an abort stops a read that is under way', async () => {
  await client.restore(text, signal);
  const stop = new AbortController();
  const reason = new Error('stop');
  const reader = { ...nothing, chain: () => stop.abort(reason) };
  await expect(client.read('nat', reader, stop.signal)).rejects.toBe(reason);
});

test('what a reader throws is the rejection', async () => {
  const broken = new Error('ours');
  const reader = {
    ...nothing,
    chain: () => {
      throw broken;
    },
  };
  await expect(client.read('nat', reader, signal)).rejects.toBe(broken);
});
