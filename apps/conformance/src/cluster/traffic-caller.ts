import { HostError, type Millis, seconds } from '@switchyard/core';
import { type JsonRequest, type ObjectClient, statusMessage } from '@switchyard/core/kubernetes';
import { tryParseJson } from '../lab/answers.ts';
import { type TrafficCall, type TrafficCalls, trafficTokenHeader } from '@switchyard/lab';

/** Client for the pods of a run. */
export interface Caller {
  readonly api: ObjectClient;
  readonly namespace: string;
  readonly token: string;
}

export interface CalledPod {
  readonly name: string;
  readonly port: number;
}

export interface PodCall<K extends TrafficCall> {
  readonly name: K;
  readonly argument: TrafficCalls[K]['argument'];
  /** Default: long enough for any call. */
  readonly timeout?: Millis;
}

/** The calls of one sender, such as a pod. */
export type CallSender = <K extends TrafficCall>(
  name: K,
  argument: TrafficCalls[K]['argument'],
  signal: AbortSignal,
) => Promise<TrafficCalls[K]['result']>;

/** The calls of a pod, which reject as `callPod`. */
export function callsOf(caller: Caller, pod: CalledPod): CallSender {
  return (name, argument, signal) => callPod(caller, pod, { name, argument }, signal);
}

/** Long enough for attempts of a dropped flow, which run one after the other. */
const longestCall = seconds(150);

export type CallOutcome<T> =
  | { readonly status: 'done'; readonly result: T }
  | { readonly status: 'failed'; readonly why: string };

/** Calls a pod through the API server (`pods/proxy`). Rejects with `HostError` when the pod does not answer as it should. */
export async function callPod<K extends TrafficCall>(
  caller: Caller,
  pod: CalledPod,
  call: PodCall<K>,
  signal: AbortSignal,
): Promise<TrafficCalls[K]['result']> {
  const outcome = await tryCallPod(caller, pod, call, signal);
  if (outcome.status === 'done') return outcome.result;
  throw new HostError('cluster.pod', `call ${call.name} to pod ${caller.namespace}/${pod.name}: ${outcome.why}`);
}

/** Like `callPod`, but returns a failure as a result. Still rejects when the API server is unreachable. */
export async function tryCallPod<K extends TrafficCall>(
  { api, namespace, token }: Caller,
  { name: pod, port }: CalledPod,
  { name, argument, timeout = longestCall }: PodCall<K>,
  signal: AbortSignal,
): Promise<CallOutcome<TrafficCalls[K]['result']>> {
  const request: JsonRequest = {
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/pods/${pod}:${port}/proxy/${name}`,
    body: argument,
    headers: { [trafficTokenHeader]: token },
  };
  const late = AbortSignal.timeout(timeout);
  try {
    const { status, body } = await api.send(request, AbortSignal.any([signal, late]));
    if (status !== 200) return { status: 'failed', why: `answered ${status}: ${statusMessage(body)}` };
    const result = tryParseJson<TrafficCalls[K]['result']>(body);
    return result === undefined ? { status: 'failed', why: 'the answer is no JSON' } : { status: 'done', result };
  } catch (error) {
    signal.throwIfAborted();
    if (!late.aborted) throw error;
    return { status: 'failed', why: `no answer within ${timeout / 1000} s` };
  }
}
