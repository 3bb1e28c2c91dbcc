import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { conformanceCall } from '../scripted/kind-script.ts';
import { type ScriptedMachine, scriptMachine } from '../scripted/scripted-machine.ts';
import type { ScriptedCall } from '../scripted/scripted-programs.ts';

let machine: ScriptedMachine;

// A cell is some 60 calls, ten of which start a shell.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

beforeEach(async () => {
  machine = await scriptMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

interface Listed {
  readonly cells: readonly {
    readonly id: string;
    readonly kind: string;
    readonly runnable: boolean;
    readonly obstacles: readonly string[];
  }[];
  readonly excluded: readonly { readonly id: string; readonly reason: string }[];
}

async function list(...args: readonly string[]): Promise<Listed> {
  machine.printed.length = 0;
  expect(await machine.run(['--list', '--json', ...args])).toBe(0);
  return JSON.parse(machine.printed.join('\n')) as Listed;
}

test('on a machine that has everything all cells can run', async () => {
  const { cells, excluded } = await list();
  expect(cells.filter(({ runnable }) => !runnable)).toEqual([]);
  expect(cells.filter(({ kind }) => kind === 'kind')).toHaveLength(30);
  expect(cells.filter(({ kind }) => kind === 'lab')).toHaveLength(15);
  expect(excluded).toHaveLength(24);
});

/** Missing parts of a machine, and the reasons given for its cells. */
const lacks: readonly (readonly [what: string, calls: readonly ScriptedCall[], said: string])[] = [
  [
    'no engine',
    [{ call: 'docker info *', exitCode: 1, stderr: 'Cannot connect to the Docker daemon' }],
    'no container engine answers docker info: Cannot connect to the Docker daemon',
  ],
  [
    'an engine without words',
    [{ call: 'docker info *', stdout: ' \n' }],
    'no container engine answers docker info: it says nothing',
  ],
  [
    'cgroup v1',
    [{ call: 'docker info *', stdout: '20.10.24 1\n' }],
    'the engine uses cgroup v1; kubelets from 1.35 on want v2',
  ],
  [
    "Debian's kind",
    [{ call: 'kind version *', stdout: '0.27.0\n' }],
    'kind is 0.27.0, and the node images were made for 0.33.0: install that release',
  ],
  [
    'kubectl that breaks',
    [{ call: 'kubectl version *', exitCode: 127, stderr: 'no libc' }],
    'kubectl ends with 127: no libc',
  ],
  [
    'no way to the registry',
    [
      { call: 'docker image inspect *', exitCode: 1 },
      { call: 'docker manifest inspect *', exitCode: 1, stderr: 'dial tcp: lookup registry-1.docker.io: no such host' },
    ],
    'kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5 is not in the engine and cannot be pulled: dial tcp',
  ],
];

describe('a machine with', () => {
  test.each(lacks)('%s: its kind cells cannot run, its lab cells can', async (_, calls, said) => {
    for (const call of calls) machine.programs.expect(call);
    const { cells } = await list('*-dual-1.37-none', 'lab-nftables-dual');
    const [first, ...others] = cells;
    expect(first).toMatchObject({ runnable: false });
    expect(first?.obstacles.join('\n')).toContain(said);
    expect(others.at(-1)).toMatchObject({ id: 'lab-nftables-dual', runnable: true });
  });

  test('nothing: --all ends with 3, since no cell ran; with one that can run the others are skipped', async () => {
    machine.programs.expect({ call: 'docker info *', exitCode: 1, stderr: 'no daemon' });
    expect(await machine.run(['nftables-*', '--no-upstream'])).toBe(3);
    machine.programs.expect({ call: 'docker info *', stdout: '28.2.2 2\n' });
    machine.programs.expect({ call: 'docker image inspect * kindest/node:v1.35*', exitCode: 1 });
    machine.programs.expect({ call: 'docker manifest inspect *', exitCode: 1, stderr: 'manifest unknown' });
    machine.printed.length = 0;
    expect(await machine.run(['nftables-ipv4-*', '--no-upstream'])).toBe(0);
    expect(machine.printed.at(-1)).toBe('e2e: 2 passed, 1 skipped');
    expect(machine.printed).toContain('skipped  nftables-ipv4-1.35-switchyard');
  });

  test('too few inotify instances left: a cell is refused before its cluster is made, and says what to set', async () => {
    const { runProgram } = await import('../../src/program.ts');
    const machineFacts = { ...machine.surroundings.machine, inotify: { limit: 128, used: 90 } };
    const args = ['nftables-dual-1.37-none', '--no-upstream', '--results', `${machine.folder}/results`];
    const surroundings = { ...machine.surroundings, machine: machineFacts };
    expect(await runProgram(args, surroundings, AbortSignal.timeout(10_000))).toBe(3);
    expect(machine.printed.join('\n')).toContain(
      'fs.inotify.max_user_instances is 128, of which 90 are in use; 3 nodes need about 63: sudo sysctl fs.inotify.max_user_instances=512',
    );
    expect((await machine.programs.calls()).filter((call) => call.startsWith('kind create'))).toEqual([]);
  });

  test('neither Linux nor root: lab cells say why not', async () => {
    const { runProgram } = await import('../../src/program.ts');
    const of = async (platform: string): Promise<string> => {
      machine.printed.length = 0;
      await runProgram(
        ['--list', 'lab-nftables-dual'],
        { ...machine.surroundings, machine: { platform, isRoot: false, inotify: undefined } },
        AbortSignal.timeout(10_000),
      );
      return machine.printed.join('\n');
    };
    expect(await of('linux')).toContain('[1] a lab needs root: sudo ./dev e2e');
    expect(await of('darwin')).toContain('[1] a lab is made of Linux network namespaces, and this is darwin');
  });
});

test('the table names each reason once', async () => {
  machine.programs.expect({ call: 'docker info *', exitCode: 1, stderr: 'no daemon' });
  await machine.run(['--list', 'nftables-dual-*', 'lab-nftables-dual']);
  expect(machine.printed.join('\n').split('\n\n').slice(0, 2)).toEqual([
    `CELL                           RUNNABLE  WHY NOT
nftables-dual-1.35-switchyard  no        [1]
nftables-dual-1.36-switchyard  no        [1]
nftables-dual-1.37-switchyard  no        [1]
nftables-dual-1.37-none        no        [1]
lab-nftables-dual              yes`,
    '[1] no container engine answers docker info: no daemon',
  ]);
});

test('a dry run prints commands and runs none', async () => {
  expect(await machine.run(['--dry-run', 'nftables-dual-1.37-none', 'lab-ebpf-tc-ipv6'])).toBe(0);
  expect(await machine.programs.calls()).toEqual([]);
  const text = machine.printed.join('\n');
  expect(text).toContain(
    '\n  kind create cluster --name swy-e2e-nftables-dual-1-37-none --image kindest/node:v1.37.0@',
  );
  expect(text).toContain("'--focus=\\[sig-network\\] Services|");
  expect(text).toMatch(
    /\n {2}node .*conformance\/src\/main\.ts run -v --target lab --backend ebpf-tc --ip-family ipv6 /,
  );
  expect(text).toContain('\n  kind delete cluster --name swy-e2e-nftables-dual-1-37-none');
  expect(text).not.toContain('passed');
});

test('a lab cell runs the conformance suite, and its exit status is reported', async () => {
  machine.programs.expect(conformanceCall([], 'lab'));
  expect(await machine.run(['lab-nftables-ipv4'])).toBe(0);
  expect(await machine.result('lab-nftables-ipv4', 'conformance.log')).toContain('the summary');
  machine.programs.expect(conformanceCall(['smoke/a'], 'lab'));
  expect(await machine.run(['lab-nftables-ipv4'])).toBe(1);
  expect(machine.printed).toContain('           conformance smoke/a: title of smoke/a');
  expect((await machine.programs.calls()).some((call) => call.includes('lab/src/main.ts down'))).toBe(false);
  machine.programs.expect({ call: 'node *main.ts run -v --target lab *', exitCode: 3, stderr: 'no namespaces' });
  machine.programs.expect({ call: 'node *packages/lab/src/main.ts down --dead' });
  expect(await machine.run(['lab-nftables-ipv4'])).toBe(3);
  expect((await machine.programs.calls()).at(-1)).toContain('packages/lab/src/main.ts down --dead');
});

test('a lab cell that is aborted removes the labs that its runner had no time to remove', async () => {
  const stop = new AbortController();
  machine.programs.expect({
    call: 'node *main.ts run -v --target lab *',
    effect: ': >"$here/began"; exec /bin/sleep 60',
  });
  machine.programs.expect({ call: 'node *packages/lab/src/main.ts down --dead' });
  const running = machine.run(['lab-nftables-ipv4'], stop.signal);
  await expect.poll(() => existsSync(`${machine.programs.here}/began`)).toBe(true);
  stop.abort(new Error('stopped by SIGINT'));
  await expect(running).rejects.toThrow('stopped by SIGINT');
  expect((await machine.programs.calls()).at(-1)).toContain('packages/lab/src/main.ts down --dead');
});
