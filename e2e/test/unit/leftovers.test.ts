import { mkdir, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ownerNotes } from '../../src/owner.ts';
import { type ScriptedMachine, scriptMachine } from '../scripted/scripted-machine.ts';

const cell = 'nftables-dual-1.37-none';
const cluster = 'swy-e2e-nftables-dual-1-37-none';
const other = 'swy-e2e-ebpf-ipv4-1-35-switchyard';
let machine: ScriptedMachine;

// A cell is some 60 calls, ten of which start a shell.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

beforeEach(async () => {
  machine = await scriptMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

test("what a crashed run left is removed, by its owner's absence; strangers' clusters stay", async () => {
  await machine.addCluster(other);
  await machine.addCluster('kind');
  expect(await machine.run([cell, '--no-upstream'])).toBe(0);
  expect(await machine.clusters()).toEqual(['kind']);
  expect(machine.printed.join('\n')).toContain(`removing ${other}, which an earlier run left`);
});

test('a process with the number of the one that crashed is not taken for it', async () => {
  await mkdir(machine.surroundings.stateFolder);
  const stale = { pid: process.pid, startTime: '1', isKept: false };
  await writeFile(`${machine.surroundings.stateFolder}/${other}.json`, JSON.stringify(stale));
  await machine.addCluster(other);
  expect(await machine.run([cell, '--no-upstream'])).toBe(0);
  expect(await machine.clusters()).toEqual([]);
});

test('the cluster of a run that goes on stays, and its own cell is refused', async () => {
  await ownerNotes(machine.surroundings.stateFolder).claim(other);
  await machine.addCluster(other);
  expect(await machine.run([cell, '--no-upstream'])).toBe(0);
  expect(await machine.clusters()).toEqual([other]);
  expect(await machine.run(['ebpf-ipv4-1.35-switchyard', '--no-upstream'])).toBe(3);
  expect(machine.printed.join('\n')).toContain(`process ${process.pid} runs this cell already`);
  expect(await machine.clusters(), 'a run that was refused removes nothing of the other').toEqual([other]);
});

test('a controller whose cluster is gone is removed too', async () => {
  const containers = `${machine.programs.here}/containers`;
  await mkdir(containers, { recursive: true });
  await writeFile(`${containers}/orphan`, `dev.switchyard.e2e.cluster=${other}\n`);
  expect(await machine.run([cell, '--no-upstream'])).toBe(0);
  expect(await machine.programs.calls()).toContain('docker rm --force --volumes orphan');
});

test('--keep leaves the cluster until the same cell runs again, or --clean', async () => {
  expect(await machine.run([cell, '--no-upstream', '--keep'])).toBe(0);
  expect(await machine.clusters()).toEqual([cluster]);
  expect(machine.printed.join('\n')).toContain(`the cluster ${cluster} stays until ./dev e2e down ${cell}`);
  expect(machine.printed.join('\n')).toMatch(/^export KUBECONFIG=\S+\/kubeconfig$/m);
  expect(await machine.run(['ebpf-ipv4-1.35-switchyard', '--no-upstream'])).toBe(0);
  expect(await machine.clusters()).toEqual([cluster]);
  expect(await machine.run([cell, '--no-upstream', '--keep'])).toBe(0);
  expect(machine.printed.join('\n')).toContain(`removing ${cluster}, which an earlier run left`);
  expect(await machine.run(['--clean'])).toBe(0);
  expect(await machine.clusters()).toEqual([]);
});

test('an abort removes the cluster, writes no diagnostics, and rejects with its reason', async () => {
  const stop = new AbortController();
  const effect = `mkdir -p "$here/clusters"; : >"$here/clusters/$4"; : >"$here/began"; exec /bin/sleep 60`;
  machine.programs.expect({ call: 'kind create cluster *', effect });
  const running = machine.run([cell, '--no-upstream'], stop.signal);
  await expect.poll(() => machine.clusters()).toEqual([cluster]);
  stop.abort(new Error('stopped by SIGINT'));
  await expect(running).rejects.toThrow('stopped by SIGINT');
  expect(await machine.clusters()).toEqual([]);
  expect((await machine.programs.calls()).at(-1)).toContain('label=dev.switchyard.lb.cluster');
  expect((await machine.programs.calls()).some((call) => call.startsWith('kind export'))).toBe(false);
});
