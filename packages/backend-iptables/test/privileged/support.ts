import { existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seconds } from '@switchyard/core';
import { type CommandOptions, type CommandResult, type CommandRunner, createCommandRunner } from '@switchyard/host';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    variant: IptablesVariant;
  }
}

/** The variant of iptables that this run of the tests is about. */
export const variant: IptablesVariant = inject('variant');

export const { signal } = new AbortController();

/** An empty network namespace of our own, with `lo` up. */
export interface TestNamespace extends AsyncDisposable {
  /** Below /run/netns. */
  readonly name: string;
  /** Path of the namespace. */
  readonly path: string;
  /** The lock of its iptables-legacy. */
  readonly lockFile: string;
  /** Runs programs in it, with a lock file for iptables of its own: others on this machine are not waited for. */
  readonly runner: CommandRunner;
  /** Runs a program to its end; throws unless it exits with 0. Returns what it printed. */
  run(line: string, stdin?: string): Promise<string>;
}

const prefix = 'swy-ipt-';
const timeout = seconds(120);
const machine = createCommandRunner();
let made = 0;

/** Makes a namespace. Those that a test run left which was killed are removed first. */
export async function createNamespace(): Promise<TestNamespace> {
  await removeLeftovers();
  made += 1;
  const name = `${prefix}${process.pid}-${made}`;
  const path = `/run/netns/${name}`;
  const lockFile = join(tmpdir(), `${name}.lock`);
  await ip('netns', 'add', name);
  const runner: CommandRunner = {
    run: (file, args, options) =>
      // By exec, so that the process id is that of the program.
      machine.run('nsenter', [`--net=${path}`, '--', file, ...args], {
        ...options,
        env: { XTABLES_LOCKFILE: lockFile, ...options.env },
      }),
  };
  const run = async (line: string, stdin = ''): Promise<string> => {
    const [file = '', ...args] = line.split(' ');
    return succeeded(line, await runner.run(file, args, { stdin, timeout, signal }));
  };
  await run('ip link set lo up');
  const dispose = async (): Promise<void> => {
    await ip('netns', 'delete', name);
    rmSync(lockFile, { force: true });
  };
  return { name, path, lockFile, runner, run, [Symbol.asyncDispose]: dispose };
}

/** Namespaces are named after the process that made them; after its end they are leftovers. */
async function removeLeftovers(): Promise<void> {
  const names = existsSync('/run/netns') ? readdirSync('/run/netns') : [];
  for (const name of names) {
    const maker = /^swy-ipt-(\d+)-\d+$/.exec(name)?.[1];
    if (maker === undefined || existsSync(`/proc/${maker}`)) continue;
    await ip('netns', 'delete', name);
    rmSync(join(tmpdir(), `${name}.lock`), { force: true });
  }
}

async function ip(...args: readonly string[]): Promise<void> {
  succeeded(`ip ${args.join(' ')}`, await machine.run('ip', args, { timeout, signal }));
}

function succeeded(line: string, { exitCode, stdout, stderr }: CommandResult): string {
  if (exitCode !== 0) throw new Error(`${line}: exit code ${exitCode}: ${stderr}`);
  return stdout;
}

/** Options for a command of a test. */
export const options: CommandOptions = { timeout, signal };
