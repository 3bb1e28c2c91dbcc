import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { HostError, millis } from '@switchyard/core';
import { type CommandRunner, createCommandRunner } from '@switchyard/host';
import type { LabCommandOptions, LabCommandResult, LabHost } from './lab.ts';
import { namespacesRoot } from './names.ts';

/** Maximum output of a command, to bound memory. */
const maxOutput = 64 * 1024 * 1024;

/** Returns the environment of child processes: this process's, plus Debian's folders of `ip` and `nft`. */
export function childEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const path = process.env['PATH'] ?? '';
  return { ...(process.env as Record<string, string>), PATH: `${path}:/usr/sbin:/usr/bin:/sbin:/bin`, ...extra };
}

/** Runs `file` to its end with its output in memory. A non-zero exit is a result; not starting or a timeout rejects. */
export function runProgram(
  file: string,
  args: readonly string[],
  options: LabCommandOptions = {},
): Promise<LabCommandResult> {
  const { timeout = millis(30_000) } = options;
  return new Promise((resolve, reject) => {
    // A process group of its own: a timeout also kills its children, which would keep the pipes open.
    const child = spawn(file, args, { env: childEnvironment(options.env), stdio: 'pipe', detached: true });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let size = 0;
    let killed: string | undefined;
    const kill = (reason: string): void => {
      killed = reason;
      if (child.pid !== undefined) killGroup(child.pid, 'SIGKILL');
    };
    const timer = setTimeout(() => kill(`did not end within ${timeout} ms`), timeout);
    const collect = (into: Buffer[]) => (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutput) return kill(`printed more than ${maxOutput} bytes`);
      into.push(chunk);
    };
    child.stdout.on('data', collect(stdout));
    child.stderr.on('data', collect(stderr));
    child.stdin.on('error', () => undefined); // the program may end without reading its input
    child.stdin.end(options.stdin ?? '');
    child.once('error', (cause) => {
      clearTimeout(timer);
      reject(new HostError('command.start', `cannot start ${file}: ${cause.message}`, { cause }));
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      const text = (chunks: Buffer[]): string => Buffer.concat(chunks).toString();
      if (killed !== undefined) {
        return reject(new HostError('command.killed', `killed ${[file, ...args].join(' ')}: it ${killed}`));
      }
      const exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
      resolve({ exitCode, stdout: text(stdout), stderr: text(stderr) });
    });
  });
}

/** Sends `signal` to the process group led by `pid`. A missing group is success. */
export function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Runs a POSIX shell script given as text that stops at its first failing command. Throws `HostError`
 * with the end of its standard error; `what` names the attempt.
 */
export async function runScript(what: string, script: string): Promise<void> {
  const result = await runProgram('sh', ['-eu', '-s'], { stdin: script });
  if (result.exitCode === 0) return;
  const tail = result.stderr.trim().split('\n').slice(-5).join('; ');
  throw new HostError('lab.script', `cannot ${what}: exit code ${result.exitCode}: ${tail}`);
}

/**
 * A runner whose programs enter a lab host's network namespace; by exec, so that the process id is the program's. iptables
 * has its own lock file there, so it does not wait for other programs of this machine.
 */
export function runnerIn(host: LabHost, folder: string): CommandRunner {
  const runner = createCommandRunner();
  const enter = [`--net=${namespacesRoot}/${host.namespace}`, '--'];
  const own = { XTABLES_LOCKFILE: `${folder}/${host.name}-xtables.lock` };
  return {
    run: (file, args, options) =>
      runner.run('nsenter', [...enter, file, ...args], { ...options, env: { ...own, ...options.env } }),
  };
}
