import type { Kubectl } from './kubectl.ts';

/** A port of a pod. */
export interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

/** A forwarded port; disposing ends it. */
export interface ForwardedPort extends Disposable {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
}

/** Forwards a local port to a pod with `kubectl port-forward`. Rejects with `HostError` that has kubectl's words. */
export async function forwardPort(
  { namespace, pod, port }: PodPort,
  kubectl: Kubectl,
  signal: AbortSignal,
): Promise<ForwardedPort> {
  const args = ['port-forward', `--namespace=${namespace}`, `pod/${pod}`, `:${port}`];
  const started = await kubectl.start(args, /127\.0\.0\.1:(\d+) ->/, signal);
  return { url: `http://127.0.0.1:${started.match[1]}`, [Symbol.dispose]: () => started[Symbol.dispose]() };
}
