import type { CommandRunner } from '@switchyard/host';
import { createLab, createProber, type Prober, runnerIn, startEchoServer } from '@switchyard/lab';

/** A node, two pods that say who they are, and a prober in a third pod. */
export interface Place {
  /** Runs programs in the node's network namespace. */
  readonly runner: CommandRunner;
  readonly netns: string;
  /** Addresses of the pods `a` and `b`, which answer on port 8080. */
  readonly pods: Readonly<Record<Pod, string>>;
  readonly prober: Prober;
}

/** Who answers. */
export type Pod = 'a' | 'b';

/** Two nodes that are alike: one is programmed by us, the other is fed what kube-proxy would feed. */
export interface Stage extends AsyncDisposable {
  readonly ours: Place;
  readonly theirs: Place;
}

/** Makes fresh network namespaces, without a rule in them. */
export async function setStage(signal: AbortSignal): Promise<Stage> {
  const lab = await createLab({ name: 'iptb', nodes: 2, ipFamilies: ['IPv4'] }, signal);
  try {
    const [ours, theirs] = await Promise.all(
      lab.nodes.map(async (node) => {
        const [a, b, client] = await Promise.all(
          ['a', 'b', 'client'].map((name) => lab.addPod(node, `${name}${node.name.slice(-1)}`)),
        );
        if (a === undefined || b === undefined || client === undefined) throw new Error('a pod is missing');
        startEchoServer(a, { pod: 'a', tcp: [8080] });
        startEchoServer(b, { pod: 'b', tcp: [8080] });
        const prober = await createProber(client, signal);
        const pods = { a: a.addresses.IPv4 ?? '', b: b.addresses.IPv4 ?? '' };
        for (const by of ['a', 'b'] as const) await answer(prober, by, { address: pods[by], port: 8080 });
        return { runner: runnerIn(node, lab.folder), netns: `/run/netns/${node.namespace}`, pods, prober };
      }),
    );
    if (ours === undefined || theirs === undefined) throw new Error('a node is missing');
    return { ours, theirs, [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose]() };
  } catch (error) {
    await lab[Symbol.asyncDispose]();
    throw error;
  }
}

/** The moment, of CLOCK_MONOTONIC in milliseconds, at which this pod first answers there. */
export async function answer(
  prober: Prober,
  by: Pod,
  at: { readonly address: string; readonly port: number },
): Promise<number> {
  const request = { protocol: 'tcp', ...at, timeout: 30 } as const;
  const found = await prober.awaitAnswer(request, { by, interval: 2, timeout: 60_000 });
  if (found.result.status === 'answered' && found.result.by === by) return found.at;
  throw new Error(`pod ${by} never answered at ${at.address}:${at.port} (last: ${found.result.status})`);
}
