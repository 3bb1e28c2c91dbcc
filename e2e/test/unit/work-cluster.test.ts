import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ownerNotes } from '../../src/owner.ts';
import { type ScriptedMachine, scriptMachine } from '../scripted/scripted-machine.ts';

const cell = 'nftables-dual-1.36-switchyard';
const cluster = 'swy-e2e-nftables-dual-1-36-switchyard';
const other = 'swy-e2e-ebpf-ipv4-1-35-switchyard';
let machine: ScriptedMachine;

// A cell is some 60 calls, ten of which start a shell.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

beforeEach(async () => {
  machine = await scriptMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

const said = (): string => machine.printed.join('\n');
const callsWith = async (part: string): Promise<readonly string[]> =>
  (await machine.programs.calls()).filter((call) => call.includes(part));

describe('a cluster for work', () => {
  test('up makes it with agent and controller, runs no test, and prints its kubeconfig', async () => {
    expect(await machine.run(['up', cell])).toBe(0);
    expect(await machine.clusters()).toEqual([cluster]);
    expect(said()).toMatch(new RegExp(`^export KUBECONFIG=\\S+/${cell}/kubeconfig$`, 'm'));
    expect(await callsWith(`${cluster}-lb-controller`)).not.toEqual([]);
    for (const test of ['conformance/src/main.ts', 'e2e.test', `${cluster}-upstream`])
      expect(await callsWith(test)).toEqual([]);
    expect(await machine.programs.unexpected()).toEqual([]);
  });

  test('up that fails leaves diagnostics and no cluster', async () => {
    machine.programs.expect({ call: 'kubectl * wait *', exitCode: 1, stderr: 'error: timed out\n' });
    expect(await machine.run(['up', cell])).toBe(3);
    expect(await machine.clusters()).toEqual([]);
    expect(await machine.result(cell, 'diagnostics/kind/journal.log')).toBe('a journal\n');
  });

  test('down removes it, and what a killed run left; a cluster that is kept stays', async () => {
    const kept = 'swy-e2e-iptables-dual-1-37-none';
    expect(await machine.run(['up', cell])).toBe(0);
    await machine.addCluster(other);
    await machine.addCluster(kept);
    await machine.addCluster('kind');
    await ownerNotes(machine.surroundings.stateFolder).keep(kept);
    expect(await machine.run(['down', cell])).toBe(0);
    expect([...(await machine.clusters())].sort()).toEqual(['kind', kept]);
    expect(said()).toContain(`removing ${cluster}`);
    expect(said()).toContain(`removing ${other}, which an earlier run left`);
    expect(await machine.run(['down', cell])).toBe(0);
    expect(said()).toContain(`${cluster} is not there`);
  });

  test('down leaves the cluster of a run that goes on', async () => {
    await ownerNotes(machine.surroundings.stateFolder).claim(cluster);
    await machine.addCluster(cluster);
    expect(await machine.run(['down', cell])).toBe(2);
    expect(said()).toContain(`process ${process.pid} runs ${cell}: end it`);
    expect(await machine.clusters()).toEqual([cluster]);
  });

  test.each(['up', 'down'])('%s of a lab cell says which command is for labs', async (verb) => {
    expect(await machine.run([verb, 'lab-nftables-dual'])).toBe(2);
    expect(said()).toContain(`lab-nftables-dual has no cluster; ./dev lab ${verb}`);
  });
});

describe('a node image by name', () => {
  test('is what kind gets, and says the release of the tests; the matrix image is not looked for', async () => {
    expect(await machine.run([cell, '--node-image', 'my/node:v1.36.2'])).toBe(0);
    expect(await callsWith('kind create cluster')).toEqual([
      expect.stringContaining('--image my/node:v1.36.2 --config'),
    ]);
    expect(await callsWith('--list-tests')).toEqual([expect.stringContaining('registry.k8s.io/conformance:v1.36.2')]);
    expect(await callsWith('kindest/node')).toEqual([]);
  });

  test('that neither the engine nor a registry has: the cell says so, and what to do', async () => {
    machine.programs.expect({ call: 'docker image inspect *', exitCode: 1 });
    machine.programs.expect({ call: 'docker manifest inspect *', exitCode: 1, stderr: 'no such host' });
    expect(await machine.run([cell, '--node-image', 'my/node:v1.36.2', '--no-upstream'])).toBe(3);
    expect(said()).toContain(
      'my/node:v1.36.2 is not in the engine and cannot be pulled: no such host; docker load --input FILE brings an image',
    );
    expect(await callsWith('conformance:v'), 'without upstream its image is not looked for').toEqual([]);
  });

  test('is refused for cells of several versions, and for another version than its tag', async () => {
    expect(await machine.run(['nftables-dual-*-switchyard', '--node-image', 'my/node:v1.36.2'])).toBe(2);
    expect(said()).toContain('are for cells of one Kubernetes version, and the chosen ones have 1.35, 1.36, 1.37');
    expect(await machine.run(['nftables-dual-1.37-switchyard', '--node-image', 'my/node:v1.36.2'])).toBe(2);
    expect(said()).toContain('my/node:v1.36.2 holds Kubernetes 1.36, and the chosen cells want 1.37');
  });

  test("of upstream's tests is used for their list and their run", async () => {
    expect(await machine.run([cell, '--upstream-image', 'my/tests:1'])).toBe(0);
    expect(await callsWith(' my/tests:1 ')).toHaveLength(2);
    expect(await callsWith('registry.k8s.io/conformance')).toEqual([]);
  });
});
