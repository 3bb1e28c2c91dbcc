import { seconds } from '@switchyard/core';
import { commandFailed, type CommandRunner, kernelFiles } from '@switchyard/host';
import { runnerInNetns } from './own-namespace.ts';

/** Settings of one network namespace: files below /proc/sys/net, which show the namespace of the reading process. */
export interface KernelSettings {
  /** Undefined: there is no such setting, as without IPv6. Rejects with `HostError`. */
  read(path: string, signal: AbortSignal): Promise<string | undefined>;
  /** Rejects with `HostError`, as in containers, where /proc/sys is read-only. */
  write(path: string, value: string, signal: AbortSignal): Promise<void>;
}

const limit = seconds(5);

/** Those of our own namespace, or of the one with this name under /run/netns, where programs read and write them. */
export function newKernelSettings(
  runner: CommandRunner,
  netns: string | undefined,
  files: ReturnType<typeof kernelFiles> = kernelFiles(),
): KernelSettings {
  if (netns === undefined) {
    return {
      read: (path) => Promise.try(() => files.read(path)),
      write: (path, value) => Promise.try(() => files.write(path, value)),
    };
  }
  const inside = runnerInNetns(runner, netns);
  return {
    async read(path, signal) {
      const result = await inside.run('cat', [path], { timeout: limit, signal });
      if (result.exitCode === 0) return result.stdout.trim();
      if (result.stderr.includes('No such file or directory')) return undefined;
      throw commandFailed(`cannot read ${path} in ${netns}`, { file: 'cat', args: [path] }, result);
    },
    async write(path, value, signal) {
      const result = await inside.run('tee', [path], { stdin: value, timeout: limit, signal });
      const attempt = `cannot write ${value} to ${path} in ${netns}`;
      if (result.exitCode !== 0) throw commandFailed(attempt, { file: 'tee', args: [path] }, result);
    },
  };
}
