import { spawn } from 'node:child_process';
import type { Server } from 'node:net';
import { HostError, type Millis, millis } from '@switchyard/core';
import { nodeProgram } from '../program-path.ts';

/** Address inside a network namespace. */
export interface NamespaceAddress {
  /** Name under /run/netns. */
  readonly namespace: string;
  /** An address that an interface of the namespace has, or a wildcard. */
  readonly host: string;
  /** 0 lets the kernel choose. */
  readonly port: number;
}

/** A helper that has not answered after this long is killed. */
const helperTimeout: Millis = millis(10_000);

/**
 * Returns a listening socket of another network namespace, for `ApiServer.listen`. A short-lived helper
 * process enters the namespace, listens, passes the socket on and exits; the socket stays in its namespace.
 * Rejects with `HostError` when the namespace does not exist or the address is unavailable. Needs root.
 */
export function listenInNamespace(where: NamespaceAddress, signal: AbortSignal): Promise<Server> {
  const { namespace, host, port } = where;
  const helper = [process.execPath, ...nodeProgram('listen-helper'), host, String(port)];
  return new Promise((resolve, reject) => {
    const child = spawn('nsenter', [`--net=/run/netns/${namespace}`, ...helper], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      signal,
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), helperTimeout);
    let stderr = '';
    let isHandedOver = false;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.on('message', (_message, handle) => {
      isHandedOver = true;
      child.send('received');
      resolve(handle as Server);
    });
    const fail = (detail: string, cause?: unknown): void => {
      clearTimeout(timer);
      if (isHandedOver) return;
      const target = `${host} port ${port} in network namespace ${namespace}`;
      reject(
        new HostError(
          'apiserver.listen',
          `listening on ${target}: ${detail}; check that the namespace has the address`,
          { cause },
        ),
      );
    };
    child.once('error', (cause) => (signal.aborted ? reject(signal.reason) : fail(cause.message, cause)));
    child.once('exit', (code, by) =>
      fail(`the helper ended with ${code ?? by ?? 'nothing'}: ${stderr.trim().slice(-300)}`),
    );
  });
}
