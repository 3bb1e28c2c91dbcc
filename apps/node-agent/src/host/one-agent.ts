import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import {
  type Clock,
  HostError,
  type Millis,
  millis,
  seconds,
  type NodeName,
  systemClock,
  within,
} from '@switchyard/core';
import { hostname } from 'node:os';
import { version } from '../version.ts';

/** Identity of an agent, reported to another one that starts on its node. */
export interface AgentIdentity {
  /** Pid in the agent's own pid namespace: often 1 in a container. */
  readonly pid: number;
  readonly hostName: string;
  /** `namespace/name` of its pod; empty if unknown. */
  readonly pod: string;
  readonly nodeName: string;
  readonly version: string;
  /** ISO 8601. */
  readonly startedAt: string;
}

/**
 * Name of an abstract unix socket. It belongs to the network namespace as the rules do, is shared by all containers in the
 * host's namespace, needs no file system, and is released when its owner ends.
 */
const socketName = '\0switchyard-agent';

const answerTimeout: Millis = seconds(2);
const maxAnswer = 4096;
const attempts = 5;
const retryGap: Millis = millis(100);

interface ClaimOptions {
  readonly clock: Clock;
  readonly name?: string;
}

/**
 * Makes this process the only agent of its network namespace, until the result is disposed or the process ends. Throws
 * `HostError`, which names the agent that is there already.
 */
export async function claimNode(
  identity: AgentIdentity,
  { clock, name = socketName }: ClaimOptions,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const server = await listen(name, identity);
    if (server !== undefined) return server;
    const other = await askAgent({ clock, name }, signal);
    if (other.status === 'running') {
      throw new HostError(
        'host.secondAgent',
        `another agent runs on this node: ${describe(other.identity)}; two agents would undo each other's rules: stop it first`,
      );
    }
    await clock.sleep(retryGap, signal); // it ended in between
  }
  throw new HostError(
    'host.secondAgent',
    `cannot determine whether another agent runs on this node: its socket was taken and released ${attempts} times; try again`,
  );
}

/** Whether an agent runs in this network namespace; `identity` is undefined if it holds the socket but does not answer. */
type AgentAnswer =
  | { readonly status: 'none' }
  | { readonly status: 'running'; readonly identity: AgentIdentity | undefined };

/** Asks the agent of this network namespace for its identity. */
export async function askAgent({ clock, name = socketName }: ClaimOptions, signal: AbortSignal): Promise<AgentAnswer> {
  const late = new HostError('host.secondAgent', 'the agent on this node does not answer');
  try {
    const limits = { clock, limit: answerTimeout, late: () => late };
    const text = await within(limits, (stop) => readAnswer(name, stop), signal);
    return text === undefined ? { status: 'none' } : { status: 'running', identity: parseIdentity(text) };
  } catch (error) {
    if (error !== late) throw error;
    return { status: 'running', identity: undefined };
  }
}

/** Throws `HostError` with the identity of a running agent, which would restore removed state. */
export async function refuseWhileRunning(clock: Clock, signal: AbortSignal): Promise<void> {
  const other = await askAgent({ clock }, signal);
  if (other.status === 'none') return;
  throw new HostError('host.running', `an agent runs on this node: ${describe(other.identity)}; stop it first`);
}

function describe(identity: AgentIdentity | undefined): string {
  if (identity === undefined)
    return 'it holds the socket @switchyard-agent, but does not answer (ss -xlp shows its pid)';
  const { pid, hostName, pod, nodeName, version, startedAt } = identity;
  const where = pod === '' ? `on ${hostName}` : `in pod ${pod} on ${hostName}`;
  return `pid ${pid} ${where}, version ${version}, for Node ${nodeName}, since ${startedAt}`;
}

/** Undefined when the name is taken. */
async function listen(name: string, identity: AgentIdentity): Promise<Server | undefined> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    // A client that keeps sending must not keep this process from ending.
    socket.end(`${JSON.stringify(identity)}\n`, () => socket.destroy());
  });
  server.maxConnections = 8; // it only reports the identity
  server.unref();
  const listening = once(server, 'listening');
  server.listen(name);
  try {
    await listening;
    return server;
  } catch (error) {
    const cause = error as NodeJS.ErrnoException; // what a server emits
    if (cause.code === 'EADDRINUSE') return undefined;
    const message = `cannot make sure that no other agent runs on this node: ${cause.message}`;
    throw new HostError('host.secondAgent', message, { cause });
  }
}

/** Undefined if no process listens. */
async function readAnswer(name: string, signal: AbortSignal): Promise<string | undefined> {
  const socket = connect(name);
  try {
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => {
      text += part;
      if (text.length > maxAnswer) socket.destroy();
    });
    await once(socket, 'close', { signal });
    return text;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return undefined;
    signal.throwIfAborted();
    return ''; // a process listens, but a full queue or a security module prevents the request
  } finally {
    socket.destroy();
  }
}

function parseIdentity(text: string): AgentIdentity | undefined {
  try {
    const raw = JSON.parse(text) as Partial<Record<keyof AgentIdentity, unknown>> | null; // checked below
    if (typeof raw?.pid !== 'number') return undefined;
    const textOf = (key: keyof AgentIdentity): string => String(raw[key] ?? '').slice(0, 300);
    return {
      pid: raw.pid,
      hostName: textOf('hostName'),
      pod: textOf('pod'),
      nodeName: textOf('nodeName'),
      version: textOf('version'),
      startedAt: textOf('startedAt'),
    };
  } catch {
    return undefined;
  }
}

/** Identity of this process. A DaemonSet passes the pod in POD_NAMESPACE and POD_NAME. */
export function agentIdentity(nodeName: NodeName, env: Readonly<Record<string, string | undefined>>): AgentIdentity {
  const pod = env['POD_NAME'] ?? '';
  return {
    pid: process.pid,
    hostName: hostname(),
    pod: pod === '' ? '' : `${env['POD_NAMESPACE'] ?? 'default'}/${pod}`,
    nodeName,
    version,
    startedAt: new Date(systemClock.now()).toISOString(),
  };
}
