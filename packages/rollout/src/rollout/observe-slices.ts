import {
  type EndpointSliceRecord,
  type IpFamily,
  type Millis,
  type ServiceRecord,
  systemClock,
} from '@switchyard/core';
import {
  apiResources,
  type ObjectClient,
  recordFromEndpointSlice,
  recordFromService,
} from '@switchyard/core/kubernetes';
import type { EndpointMoment, StateMoment } from '../run-record.ts';

/** States of one Service and its EndpointSlices, as a watch delivered them. */
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
