import { readdir, stat } from 'node:fs/promises';
import { ConfigError } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';

const namespacesFolder = '/run/netns';

/** Path of a named namespace, for netlink sockets. */
export function netnsPath(netns: string): string {
  return `${namespacesFolder}/${netns}`;
}

/** A runner whose programs run in the namespace of this name; undefined: the current one. By exec: the process id is the program's. */
export function runnerInNetns(runner: CommandRunner, netns: string | undefined): CommandRunner {
  if (netns === undefined) return runner;
  return { run: (...[file, args, options]) => runner.run(...commandInNetns(netns, file, args), options) };
}

/** A program and its arguments as they are started in the namespace of this name. `nsenter` becomes the program. */
export function commandInNetns(
  netns: string,
  file: string,
  args: readonly string[],
): readonly [file: string, args: readonly string[]] {
  return ['nsenter', [`--net=${netnsPath(netns)}`, '--', file, ...args]];
}

/**
 * Throws `ConfigError` unless the namespace (undefined: our own) is a named one in /run/netns and not the machine's: what the
 * machine itself has must not be changed. `what` begins the message: what would be changed, and by which setting.
 */
export async function assertNotMachines(
  netns: string | undefined,
  what = "--interface would change the machine's own addresses",
): Promise<void> {
  const chosen = await inodeOf(netns === undefined ? '/proc/self/ns/net' : netnsPath(netns));
  const machines = await inodeOf('/proc/1/ns/net'); // undefined where we may not look at process 1
  if (chosen !== undefined && chosen !== machines && (await namedInodes()).has(chosen)) return;
  const next = "run inside a namespace made by 'ip netns add', or name one with --netns";
  throw new ConfigError('lb.namespace', `${what}; ${next}`);
}

async function namedInodes(): Promise<ReadonlySet<number | undefined>> {
  const names = await readdir(namespacesFolder).catch(() => []); // no named namespace exists yet
  return new Set(await Promise.all(names.map((name) => inodeOf(netnsPath(name)))));
}

async function inodeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino;
  } catch {
    return undefined; // gone, or not readable
  }
}
