import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { HostError, type IpAddress, millis, type Millis } from '@switchyard/core';
import type { LabCommandOptions, LabCommandResult, LabHost, LabProcess, LabSpawnOptions, PerFamily } from './lab.ts';
import { namespacesRoot } from './names.ts';
import { childEnvironment, killGroup, runProgram } from './run-program.ts';

export interface NamespaceHostOptions {
  readonly name: string;
  readonly namespace: string;
  readonly addresses: PerFamily<IpAddress>;
  /** Cgroup of its programs; undefined leaves them in this process's cgroup. */
  readonly cgroup: string | undefined;
  readonly logFolder: string;
}

/** Returns the command line that enters the cgroup and the namespace, then executes `file`. */
export function enterCommand(
  place: { readonly namespace: string; readonly cgroup: string | undefined },
  file: string,
  args: readonly string[],
): readonly [string, ...string[]] {
  const nsenter = ['nsenter', `--net=${namespacesRoot}/${place.namespace}`, '--', file, ...args] as const;
  if (place.cgroup === undefined) return nsenter;
  return ['/bin/sh', '-c', 'echo 0 > "$0/cgroup.procs" && exec "$@"', place.cgroup, ...nsenter];
}

const defaultGrace = millis(5_000);

/** A LabHost. Programs enter its cgroup and namespace by exec, so no wrapper process stays. */
export class NamespaceHost implements LabHost {
  readonly name: string;
  readonly namespace: string;
  readonly addresses: PerFamily<IpAddress>;
  readonly #cgroup: string | undefined;
  readonly #logFolder: string;
  readonly #running = new Set<LabProcess>();
  #logs = 0;

  constructor(options: NamespaceHostOptions) {
    this.name = options.name;
    this.namespace = options.namespace;
    this.addresses = options.addresses;
    this.#cgroup = options.cgroup;
    this.#logFolder = options.logFolder;
  }

  run(file: string, args: readonly string[], options: LabCommandOptions = {}): Promise<LabCommandResult> {
    const [program, ...rest] = enterCommand({ namespace: this.namespace, cgroup: this.#cgroup }, file, args);
    return runProgram(program, rest, options);
  }

  spawn(file: string, args: readonly string[], options: LabSpawnOptions = {}): LabProcess {
    const [program, ...rest] = enterCommand({ namespace: this.namespace, cgroup: this.#cgroup }, file, args);
    const { logFile, log } = this.#newLog(options.logName ?? basename(file));
    try {
      const child = spawn(program, rest, {
        env: childEnvironment(options.env),
        stdio: options.ipc === true ? ['ignore', log, log, 'ipc'] : ['ignore', log, log],
        serialization: 'advanced', // unlike JSON it keeps fields that are undefined
        detached: true, // leads its own group: the terminal's ^C must not end it before the lab is disposed
      });
      return this.#track(child, logFile);
    } finally {
      closeSync(log);
    }
  }

  /** Kills all that was spawned here and still runs. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map((running) => running.stop(millis(0))));
  }

  /** Creates a new file: an earlier pod of this name may have left logs, which readers must not take for this pod's. */
  #newLog(name: string): { readonly logFile: string; readonly log: number } {
    for (;;) {
      this.#logs += 1;
      const logFile = `${this.#logFolder}/${this.name}-${this.#logs}-${name}.log`;
      try {
        return { logFile, log: openSync(logFile, 'ax') };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  }

  #track(child: ChildProcess, logFile: string): LabProcess {
    const pid = child.pid;
    if (pid === undefined) {
      child.once('error', () => undefined);
      throw new HostError('lab.spawn', `cannot start a program in ${this.namespace}: no process was created`);
    }
    const ended = new Promise<number | string>((resolve) => {
      child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
    });
    const running: LabProcess = { child, pid, logFile, ended, stop: (grace) => stopProcess(child, pid, ended, grace) };
    this.#running.add(running);
    void ended.then(() => this.#running.delete(running));
    child.on('error', () => undefined); // a failed kill or send; `ended` reports the end of the process
    return running;
  }
}

async function stopProcess(
  child: ChildProcess,
  pid: number,
  ended: Promise<number | string>,
  grace: Millis = defaultGrace,
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
