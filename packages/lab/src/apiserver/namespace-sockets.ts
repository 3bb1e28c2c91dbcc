import { spawn } from 'node:child_process';
import { connect, type Server, type Socket } from 'node:net';
import { HostError, type Millis, millis } from '@switchyard/core';
import { nodeProgram } from '../program-path.ts';

/** Destination of a connection. */
export interface ConnectTarget {
  readonly host: string;
  readonly port: number;
}

/**
 * Opens TCP connections. Rejects with an error whose `code` is the errno name (`ECONNREFUSED`), and with `signal.reason` when
 * aborted first.
 */
export type Connect = (target: ConnectTarget, signal: AbortSignal) => Promise<Socket>;

/** Connections out of a network namespace, through a helper process that ends with this object. */
export interface NamespaceConnector extends AsyncDisposable {
  readonly connect: Connect;
}

/** From the owner to the helper. */
export interface ConnectCall extends ConnectTarget {
  readonly id: number;
}

/** From the helper to its owner, with the socket unless it failed. */
export interface ConnectReply {
  readonly id: number;
  /** Errno name or message; undefined if connected. */
  readonly failure: string | undefined;
}

/** Starts the helper in a namespace under /run/netns. Sockets stay in their namespace. Needs root. */
export function connectorIn(namespace: string): NamespaceConnector {
  const helper = [process.execPath, ...nodeProgram('connect-helper')];
  const child = spawn('nsenter', [`--net=/run/netns/${namespace}`, ...helper], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced', // unlike JSON it keeps fields that are undefined
  });
  const waiting = new Map<number, PromiseWithResolvers<Socket>>();
  const gone = new HostError('apiserver.connect', `the helper that connects from ${namespace} has ended`);
  let calls = 0;
  let isGone = false;
  child.on('message', (message, handle) => {
    const { id, failure } = message as ConnectReply;
    const socket = handle as Socket | undefined;
    const call = waiting.get(id);
    if (call === undefined) socket?.destroy(); // the caller has aborted
    else if (failure === undefined && socket !== undefined) call.resolve(socket);
    else call.reject(Object.assign(new Error(failure ?? 'the helper sent no socket'), { code: failure }));
  });
  const ended = new Promise<void>((resolve) => {
    const end = (): void => {
      isGone = true;
      for (const { reject } of waiting.values()) reject(gone);
      resolve();
    };
    child.once('exit', end).once('error', end);
  });
  return {
    connect: async (target, signal) => {
      signal.throwIfAborted();
      if (isGone) throw gone;
      const id = ++calls;
      const call = Promise.withResolvers<Socket>();
      waiting.set(id, call);
      const onAbort = (): void => call.reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      child.send({ id, ...target } satisfies ConnectCall);
      return call.promise.finally(() => {
        waiting.delete(id);
        signal.removeEventListener('abort', onAbort);
      });
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Connects from this process's own network namespace. */
export const connectHere: Connect = ({ host, port }, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect({ host, port });
    const onAbort = (): void => void socket.destroy();
    signal.addEventListener('abort', onAbort, { once: true });
    const finish = (): void => signal.removeEventListener('abort', onAbort);
    socket.once('error', (error) => {
      finish();
      reject(error);
    });
    socket.once('close', () => (signal.aborted ? reject(signal.reason) : undefined));
    socket.once('connect', () => {
      finish();
      resolve(socket);
    });
  });

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
