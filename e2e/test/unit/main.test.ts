import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runProgram } from '../../src/program.ts';
import { checkout, type ScriptedMachine, scriptMachine } from '../scripted/scripted-machine.ts';

let machine: ScriptedMachine;

beforeEach(async () => {
  machine = await scriptMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

interface Started {
  readonly kill: (signal: NodeJS.Signals) => boolean;
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
}

function startNode(args: readonly string[], env: NodeJS.ProcessEnv = process.env): Started {
  const child = spawn(process.execPath, ['--conditions=@switchyard/source', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (output += piece.toString()));
  const ended = new Promise<{ code: number | null; output: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, output }));
  });
  return { kill: (signal) => child.kill(signal), ended };
}

/** The program itself, as ./dev e2e starts it. */
async function start(...args: readonly string[]): Promise<Started> {
  await machine.programs.install();
  // An engine elsewhere: this machine's inotify instances, which other programs use too, do not count.
  const engine = { DOCKER_HOST: 'tcp://192.0.2.1:2375' };
  const env = { ...process.env, ...engine, PATH: `${machine.programs.bin}:/usr/bin:/bin`, TMPDIR: machine.folder };
  return startNode([`${checkout}/e2e/src/main.ts`, '--results', `${machine.folder}/results`, ...args], env);
}

test('^C removes the cluster and ends with 130; nothing of the run is left', { timeout: 60_000 }, async () => {
  const effect = `mkdir -p "$here/clusters"; : >"$here/clusters/$4"; exec /bin/sleep 60`;
  machine.programs.expect({ call: 'kind create cluster *', effect });
  const running = await start('nftables-dual-1.37-none', '--no-upstream');
  await expect.poll(() => machine.clusters()).toEqual(['swy-e2e-nftables-dual-1-37-none']);
  running.kill('SIGINT');
  const { code, output } = await running.ended;
  expect(output).toContain('e2e: SIGINT: removing what the cell made; once more to end at once');
  expect(code).toBe(130);
  expect(await machine.clusters()).toEqual([]);
  expect(existsSync(`${machine.folder}/switchyard-e2e/swy-e2e-nftables-dual-1-37-none.json`)).toBe(false);
});

const statuses: readonly (readonly [args: readonly string[], code: number, said: string])[] = [
  [['--help'], 0, 'usage: ./dev e2e CELL...'],
  [['--list', '--json', 'lab-*'], 0, '"id": "lab-ebpf-nftables-dual"'],
  [['--no-such-flag'], 2, "e2e: Unknown option '--no-such-flag'"],
  [['nftables-quad'], 2, 'e2e: there is no cell nftables-quad; ./dev e2e --list shows all'],
  [
    ['nftables-ipv4-1.37-none'],
    2,
    'it is left out of the matrix: without a controller only type LoadBalancer stays pending',
  ],
  [['--matrix', 'nowhere.json', '--list'], 2, 'cannot read the matrix'],
];

test.each(statuses)('%j ends with %i', async (args, code, said) => {
  expect(await machine.run(args)).toBe(code);
  expect(machine.printed.join('\n')).toContain(said);
});

test('the status is that of the process, and what is said is its output', { timeout: 60_000 }, async () => {
  const ended = await (await start('--no-such-flag')).ended;
  expect(ended.output).toContain("e2e: Unknown option '--no-such-flag'");
  expect(ended.code).toBe(2);
});

test('our conformance runner knows the flags that both sorts of cells give it', { timeout: 60_000 }, async () => {
  const args = ['--dry-run', 'nftables-dual-1.37-none', 'lab-ebpf-tc-ipv6'];
  expect(await runProgram(args, { ...machine.surroundings, checkout }, AbortSignal.timeout(60_000))).toBe(0);
  const output = machine.printed.join('\n');
  const commands = [...output.matchAll(/^ {2}node --conditions=\S+ (\S+conformance\/src\/main\.ts run .*)$/gm)];
  expect(commands).toHaveLength(2);
  // With --help it reads the flags, and does nothing.
  const ended = await Promise.all(
    commands.map(([, command = '']) => startNode([...command.split(' '), '--help']).ended),
  );
  for (const { code, output } of ended) {
    expect(output).toContain('usage: ');
    expect(code).toBe(0);
  }
});
