import { systemClock, millis } from '@switchyard/core';
import type { EndpointSliceRecord, IpFamily, Millis, ServiceRecord } from '@switchyard/core';
import { apiResources, recordFromEndpointSlice, recordFromService } from '@switchyard/core/kubernetes';
import type { ObjectClient } from '@switchyard/core/kubernetes';
import type { EndpointMoment, StateMoment, HealthMoment } from '../run-record.ts';
import type { RequestProber, SiteNode } from './rollout-site.ts';

export interface SliceObserver extends AsyncDisposable {
  readonly states: readonly StateMoment[];
}

/** Follows one Service until it is disposed. Resolves when both watches have listed. */
export async function observeSlices(
  api: ObjectClient,
  service: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<SliceObserver> {
  const stop = new AbortController();
  const watchSignal = AbortSignal.any([stop.signal, signal]);
  const states: StateMoment[] = [];
  let record: ServiceRecord | undefined;
  const slices = new Map<string, EndpointSliceRecord>();
  const publish = (): void => {
    states.push({ at: systemClock.now(), service: record, slices: [...slices.values()] });
  };
  const serviceListed = Promise.withResolvers<void>();
  const slicesListed = Promise.withResolvers<void>();
  const select = { namespace: service.namespace };
  const ofService = { ...select, fieldSelector: `metadata.name=${service.name}` };
  const ofSlices = { ...select, labelSelector: `kubernetes.io/service-name=${service.name}` };
  const followService = async (): Promise<void> => {
    for await (const event of api.watch(apiResources.services, ofService, watchSignal)) {
      const raw = event.kind === 'listed' ? event.items[0] : event.kind === 'deleted' ? undefined : event.object;
      const projected = raw === undefined ? undefined : recordFromService(raw as never);
      record = projected?.status === 'record' ? projected.record : undefined;
      publish();
      if (event.kind === 'listed') serviceListed.resolve();
    }
  };
  const followSlices = async (): Promise<void> => {
    for await (const event of api.watch(apiResources.endpointSlices, ofSlices, watchSignal)) {
      if (event.kind === 'listed') slices.clear();
      for (const raw of event.kind === 'listed' ? event.items : [event.object]) {
        const projected = recordFromEndpointSlice(raw as never);
        if (projected.status === 'record' && event.kind !== 'deleted') slices.set(projected.name, projected.record);
        else slices.delete(projected.name);
      }
      publish();
      if (event.kind === 'listed') slicesListed.resolve();
    }
  };
  const following = Promise.allSettled([followService(), followSlices()]);
  await Promise.race([Promise.all([serviceListed.promise, slicesListed.promise]), following]);
  signal.throwIfAborted();
  return {
    states,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the observer was disposed'));
      await following;
    },
  };
}

/** The endpoint conditions of each node over time in one family, from the observed states. */
export function endpointMoments(
  states: readonly StateMoment[],
  nodes: readonly string[],
  ipFamily: IpFamily,
): readonly EndpointMoment[] {
  return nodes.flatMap((node) => {
    const moments: EndpointMoment[] = [];
    for (const state of states) {
      const next = { at: state.at, node, state: endpointState(state.slices, node, ipFamily) };
      if (moments.at(-1)?.state !== next.state) moments.push(next);
    }
    return moments;
  });
}

/** The best endpoint of a node decides: that is the one a dataplane would use. */
function endpointState(
  slices: readonly EndpointSliceRecord[],
  node: string,
  ipFamily: IpFamily,
): EndpointMoment['state'] {
  const ofFamily = slices.filter((slice) => slice.ipFamily === ipFamily);
  const own = ofFamily.flatMap((slice) => slice.endpoints).filter((endpoint) => endpoint.nodeName === node);
  if (own.some((endpoint) => endpoint.ready)) return 'ready';
  if (own.some((endpoint) => endpoint.serving && endpoint.terminating)) return 'servingTerminating';
  if (own.some((endpoint) => endpoint.terminating)) return 'terminating';
  return own.length > 0 ? 'notReady' : 'none';
}

/** The state that was in force at a time; undefined before the first. */
export function stateAt(states: readonly StateMoment[], at: Millis): StateMoment | undefined {
  return states.findLast((state) => state.at <= at);
}

/** Changes of the answer of nodes' healthCheckNodePorts. */
export interface HealthObserver extends AsyncDisposable {
  readonly moments: readonly HealthMoment[];
}

/** Sends a request to every node every `period`, from outside, until disposed; none if `port` is undefined. A failing prober ends the experiment. */
export function observeHealth(options: {
  readonly prober: RequestProber;
  readonly nodes: readonly SiteNode[];
  readonly port: number | undefined;
  readonly ipFamily: IpFamily;
  readonly period: Millis;
}): HealthObserver {
  const moments: HealthMoment[] = [];
  const last = new Map<string, number>();
  const ask = async (node: SiteNode, port: number): Promise<void> => {
    const address = node.addresses[options.ipFamily] ?? '';
    const at = systemClock.now();
    const request = { protocol: 'http', address, port, path: '/', timeout: 1000 } as const;
    const result = await options.prober.probe(request);
    const status = result.status === 'answered' ? (result.httpStatus ?? 0) : 0;
    if (last.get(node.name) === status) return;
    last.set(node.name, status);
    moments.push({ at, node: node.name, status });
  };
  const observing = inBackground(async (signal) => {
    const { port } = options;
    if (port === undefined) return;
    while (!signal.aborted) {
      const sleep = systemClock.sleep(millis(options.period), signal).catch(() => undefined);
      await Promise.all(options.nodes.map((node) => ask(node, port)));
      await sleep;
    }
  });
  return { moments, ...observing };
}

/** Starts work whose signal is aborted on disposal. Disposal waits for the end of the work and rejects as it does; an earlier end is not reported before. */
export function inBackground(work: (signal: AbortSignal) => Promise<void>): AsyncDisposable {
  const stop = new AbortController();
  const running = work(stop.signal);
  running.catch(() => undefined); // reported on disposal
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort(new Error('the work was disposed'));
      await running;
    },
  };
}
