import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkout, type ScriptedMachine, scriptMachine } from '../scripted/scripted-machine.ts';

// The program itself, as ./dev e2e starts it.

let machine: ScriptedMachine;

beforeEach(async () => {
  machine = await scriptMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

interface Started {
  readonly kill: (signal: NodeJS.Signals) => boolean;
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
}

function start(...args: readonly string[]): Started {
  // An engine elsewhere: this machine's inotify instances, which other programs use too, do not count.
  const engine = { DOCKER_HOST: 'tcp://192.0.2.1:2375' };
  const env = { ...process.env, ...engine, PATH: `${machine.programs.bin}:/usr/bin:/bin`, TMPDIR: machine.folder };
  const program = [
    '--conditions=@switchyard/source',
    `${checkout}/e2e/src/main.ts`,
    '--results',
    `${machine.folder}/results`,
  ];
  const child = spawn(process.execPath, [...program, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (output += piece.toString()));
  const ended = new Promise<{ code: number | null; output: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, output }));
  });
  return { kill: (signal) => child.kill(signal), ended };
}

test('^C removes the cluster and ends with 130; nothing of the run is left', { timeout: 60_000 }, async () => {
  const effect = `mkdir -p "$here/clusters"; : >"$here/clusters/$4"; exec /bin/sleep 60`;
  await machine.programs.expect({ call: 'kind create cluster *', effect });
  const running = start('nftables-dual-1.37-none', '--no-upstream');
  await expect.poll(() => machine.clusters(), { timeout: 30_000 }).toEqual(['swy-e2e-nftables-dual-1-37-none']);
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

test.each(statuses)('%j ends with %i', { timeout: 60_000 }, async (args, code, said) => {
  const ended = await start(...args).ended;
  expect(ended.output).toContain(said);
  expect(ended.code).toBe(code);
});

test('our conformance runner knows the flags that both sorts of cells give it', { timeout: 60_000 }, async () => {
  const { output } = await start('--dry-run', 'nftables-dual-1.37-none', 'lab-ebpf-tc-ipv6').ended;
  const commands = [...output.matchAll(/^ {2}node (--conditions=\S+ \S+conformance\/src\/main\.ts run .*)$/gm)];
  expect(commands).toHaveLength(2);
  for (const [, command = ''] of commands) {
    // With --help it reads the flags, and does nothing.
    const child = spawnSync(process.execPath, [...command.split(' '), '--help'], { encoding: 'utf8' });
    expect(child.stderr).toBe('');
    expect(child.status).toBe(0);
  }
});
