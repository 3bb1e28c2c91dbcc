import { HostError, messageOf } from '@switchyard/core';
import { type ForwardedPort, forwardPort } from './forward-port.ts';
import { reach } from './reach.ts';
import type { Kubectl } from './kubectl.ts';

/** Port of the gate's pods. */
const gatePort = 10_247;

/** An answer of the gate. */
export interface GateAnswer {
  readonly isSafe: boolean;
  /** Milliseconds. */
  readonly waited: number;
  readonly nodes: { readonly total: number; readonly applied: number };
  /** Open connections by protocol; empty where they were not counted. */
  readonly open?: Readonly<Record<string, number>>;
  readonly reasons: readonly string[];
}

/** Where the gate is. */
export interface GatePlace {
  /** Use this one, without kubectl. */
  readonly given: string | undefined;
  readonly namespace: string;
}

interface PodList {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
    readonly spec: { readonly nodeName?: string };
    readonly status: { readonly phase?: string };
  }[];
}

/** Forwards a local port to a pod of the gate, if possible not on the node `avoid`. Rejects with `HostError` if there is none. */
export async function openGate(
  { given, namespace }: GatePlace,
  { kubectl, avoid }: { readonly kubectl: Kubectl; readonly avoid: string },
  signal: AbortSignal,
): Promise<ForwardedPort> {
  if (given !== undefined) return { url: given.replace(/\/$/, ''), [Symbol.dispose]: () => undefined };
  try {
    const selector = '--selector=app.kubernetes.io/component=drain-gate';
    const list = await kubectl.run(['get', 'pods', `--namespace=${namespace}`, selector, '--output=json'], signal);
    const pods = (JSON.parse(list) as PodList).items.filter(
      ({ metadata, status }) => status.phase === 'Running' && metadata.deletionTimestamp === undefined,
    );
    const pod = pods.find(({ spec }) => spec.nodeName !== avoid) ?? pods[0];
    if (pod === undefined) throw new HostError('gate.pods', `no pod of it runs in ${namespace}`);
    return await forwardPort({ namespace, pod: pod.metadata.name, port: gatePort }, kubectl, signal);
  } catch (error) {
    throw new HostError(
      'gate.unreachable',
      `no drain gate can be reached: ${messageOf(error)}; install it (docs/operate/drain-gate.md), or name it with --gate URL`,
      { cause: error },
    );
  }
}

/** Waits at the gate for a pod. Rejects with `HostError` for anything that is no answer. */
export async function askGate(
  { url }: Pick<ForwardedPort, 'url'>,
  {
    path,
    addresses,
    seconds,
  }: { readonly path: '/drain' | '/ready'; readonly addresses: string; readonly seconds: number },
  signal: AbortSignal,
): Promise<GateAnswer> {
  const query = new URLSearchParams({ pod: addresses, seconds: String(seconds), format: 'json' });
  const response = await reach(
    `${url}${path}?${query}`,
    { signal },
    (why) => new HostError('gate.unreachable', `the drain gate at ${url} does not answer: ${why}`),
  );
  if (response.status === 200 || response.status === 503) return (await response.json()) as GateAnswer; // of our own gate
  throw new HostError(
    'gate.refused',
    `the drain gate answered ${response.status}: ${(await response.text()).split('\n')[0]}`,
  );
}
