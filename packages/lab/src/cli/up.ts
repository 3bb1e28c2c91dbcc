import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { HostError } from '@switchyard/core';
import type { ClusterRecord } from '../cluster-record.ts';
import { checkMachine } from '../create-lab.ts';
import { checkLabName, daemonLog, labsRoot } from '../names.ts';
import { nodeProgram } from '../program-path.ts';
import { childEnvironment } from '../run-program.ts';
import type { UpOptions } from './options.ts';

/** Message from the daemon to the command that started it. */
export type DaemonMessage =
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'ready'; readonly record: ClusterRecord }
  | { readonly kind: 'failed'; readonly message: string };

/**
 * Starts a background process that builds and owns the cluster, and waits until it is ready. Aborting `signal` before
 * that, or the end of this process, makes the daemon remove the unfinished lab.
 */
export async function bringUp(
  options: UpOptions,
  onProgress: (text: string) => void,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  checkLabName(options.name);
  await checkMachine(options.ipFamilies);
  mkdirSync(labsRoot, { recursive: true });
  const logFile = daemonLog(options.name);
  const log = openSync(logFile, 'w');
  const daemon = spawn(process.execPath, [...nodeProgram('lab-daemon'), JSON.stringify(options)], {
    env: childEnvironment(),
    stdio: ['ignore', log, log, 'ipc'],
    detached: true,
  });
  closeSync(log);
  const outcome = Promise.withResolvers<ClusterRecord>();
  daemon.on('message', (message: DaemonMessage) => {
    if (message.kind === 'progress') onProgress(message.text);
    else if (message.kind === 'ready') outcome.resolve(message.record);
    else outcome.reject(new HostError('lab.up', message.message));
  });
  daemon.once('error', (cause) => outcome.reject(cause));
  daemon.once('exit', (code, name) => {
    const tail = readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join('\n');
    const message = `the lab's background process ended (${code ?? name}) before it was ready; ${logFile} ends with:\n${tail}`;
    outcome.reject(new HostError('lab.up', message));
  });
  const ended = new Promise<void>((resolve) => {
    daemon.once('exit', () => resolve());
    daemon.once('error', () => resolve()); // the daemon could not start
  });
  const onAbort = (): void => void daemon.kill('SIGTERM');
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const record = await outcome.promise;
    signal.throwIfAborted();
    return record;
  } catch (error) {
    await ended; // the daemon removes its lab before it ends
    if (!signal.aborted) throw error;
    rmSync(logFile, { force: true });
    throw new HostError('lab.interrupted', `interrupted; the unfinished lab ${options.name} has been removed`);
  } finally {
    signal.removeEventListener('abort', onAbort);
    if (daemon.connected) daemon.disconnect();
    daemon.unref();
  }
}
