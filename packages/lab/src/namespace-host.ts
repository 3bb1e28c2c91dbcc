import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { HostError, millis, type Millis } from '@switchyard/core';
import type { LabHost, LabProcess } from './lab.ts';
import { namespacesRoot } from './names.ts';
import { childEnvironment, killGroup, runProgram } from './run-program.ts';

/** Where the programs of a host run. */
interface HostPlace extends Pick<LabHost, 'name' | 'namespace' | 'addresses'> {
  /** Undefined leaves them in this process's cgroup. */
  readonly cgroup: string | undefined;
  readonly logFolder: string;
}

/** Returns the command line that enters the cgroup and the namespace, then executes `file`. */
export function enterCommand(
  { namespace, cgroup }: Pick<HostPlace, 'namespace' | 'cgroup'>,
  file: string,
  args: readonly string[],
): readonly [string, ...string[]] {
  const nsenter = ['nsenter', `--net=${namespacesRoot}/${namespace}`, '--', file, ...args] as const;
  if (cgroup === undefined) return nsenter;
  return ['/bin/sh', '-c', 'echo 0 > "$0/cgroup.procs" && exec "$@"', cgroup, ...nsenter];
}

/** Makes a host. Programs enter its cgroup and namespace by exec, so no wrapper process stays. */
export function namespaceHost(place: HostPlace): LabHost {
  const { name, namespace, addresses, logFolder } = place;
  let logs = 0;
  /** Creates a new file: an earlier pod of this name may have left logs, which readers must not take for this pod's. */
  const newLog = (program: string): { readonly logFile: string; readonly log: number } => {
    for (;;) {
      logs += 1;
      const logFile = `${logFolder}/${name}-${logs}-${program}.log`;
      try {
        return { logFile, log: openSync(logFile, 'ax') };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  };
  return {
    name,
    namespace,
    addresses,
    run: async (file, args, options = {}) => {
      const [program, ...rest] = enterCommand(place, file, args);
      return runProgram(program, rest, options);
    },
    spawn: (file, args, options = {}) => {
      const [program, ...rest] = enterCommand(place, file, args);
      const { logFile, log } = newLog(options.logName ?? basename(file));
      try {
        const child = spawn(program, rest, {
          env: childEnvironment(options.env),
          stdio: options.ipc === true ? ['ignore', log, log, 'ipc'] : ['ignore', log, log],
          serialization: 'advanced', // unlike JSON it keeps fields that are undefined
          detached: true, // leads its own group: the terminal's ^C must not end it before the lab is disposed
        });
        return processOf(child, logFile, namespace);
      } finally {
        closeSync(log);
      }
    },
  };
}

function processOf(child: ChildProcess, logFile: string, namespace: string): LabProcess {
  const { pid } = child;
  child.on('error', () => undefined); // a failed kill or send; `ended` reports the end of the process
  if (pid === undefined) {
    throw new HostError('lab.spawn', `cannot start a program in ${namespace}: no process was created`);
  }
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  return { child, pid, logFile, ended, stop: (grace) => stopProcess(child, pid, ended, grace) };
}

async function stopProcess(
  child: ChildProcess,
  pid: number,
  ended: Promise<number | string>,
  grace: Millis = millis(5_000),
): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    if (grace > 0) {
      child.kill('SIGTERM');
      const timer = Promise.withResolvers<'late'>();
      const handle = setTimeout(() => timer.resolve('late'), grace);
      const first = await Promise.race([ended, timer.promise]);
      clearTimeout(handle);
      if (first !== 'late') return killGroup(pid, 'SIGKILL');
    }
    killGroup(pid, 'SIGKILL');
  }
  await ended;
}
