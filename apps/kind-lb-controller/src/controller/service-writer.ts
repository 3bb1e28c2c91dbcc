import type { V1Service } from '@kubernetes/client-node';
import { ApiServerError, type Clock, type Millis } from '@switchyard/core';
import { type JsonAnswer, type SendJson, statusMessage } from '@switchyard/core/kubernetes';
import { type LoadBalancerService, serviceFromApi } from '../cluster/cluster-objects.ts';
import { type DesiredStatus, statusPatch } from './service-status.ts';

/** Finalizer that keeps a Service until its load balancer is removed. The same as the cloud service controller's. */
export const cleanupFinalizer = 'service.kubernetes.io/load-balancer-cleanup';

/**
 * How a write ended. `gone`: the Service was deleted in the meantime, or another one has its name. `outdated`: it has changed so
 * that the write no longer makes sense; the watch delivers the change.
 */
export type ServiceWrite =
  | { readonly status: 'unchanged' | 'written'; readonly service: LoadBalancerService }
  | { readonly status: 'gone' | 'outdated' };

/** The only part of the controller that writes Services. All reject with `ApiServerError` when the server is away or refuses. */
export interface ServiceWriter {
  /** Adds our finalizer, unless the Service is being deleted meanwhile (`outdated`). */
  addFinalizer(service: LoadBalancerService, signal: AbortSignal): Promise<ServiceWrite>;
  /** Removes our finalizer, and no other. */
  removeFinalizer(service: LoadBalancerService, signal: AbortSignal): Promise<ServiceWrite>;
  /** Makes the Service's status say what is desired; what others wrote there stays. */
  writeStatus(service: LoadBalancerService, desired: DesiredStatus, signal: AbortSignal): Promise<ServiceWrite>;
}

const maxAttempts = 5;

/** Change of one write to the Service as it is now; undefined for none. */
type Change = (service: LoadBalancerService) => 'outdated' | Readonly<Record<string, unknown>> | undefined;

/**
 * A writer on one API server. Every patch carries the resourceVersion it is based on, because lists are replaced as a
 * whole; on a conflict the Service is read again and the patch made anew.
 */
export function newServiceWriter({ send, clock }: { readonly send: SendJson; readonly clock: Clock }): ServiceWriter {
  return {
    addFinalizer: (service, signal) => write({ send, service, change: withFinalizer, subresource: '' }, signal),
    removeFinalizer: (service, signal) => write({ send, service, change: withoutFinalizer, subresource: '' }, signal),
    writeStatus: (service, desired, signal) => {
      const change: Change = (current) => statusPatch(current, desired, isoSeconds(clock.now()));
      return write({ send, service, change, subresource: '/status' }, signal);
    },
  };
}

function withFinalizer({ finalizers, isBeingDeleted }: LoadBalancerService): ReturnType<Change> {
  if (finalizers.includes(cleanupFinalizer)) return undefined;
  return isBeingDeleted ? 'outdated' : { finalizers: [...finalizers, cleanupFinalizer] };
}

function withoutFinalizer({ finalizers }: LoadBalancerService): ReturnType<Change> {
  if (!finalizers.includes(cleanupFinalizer)) return undefined;
  const others = finalizers.filter((one) => one !== cleanupFinalizer);
  return { finalizers: others.length === 0 ? null : others };
}

interface Writing {
  readonly send: SendJson;
  readonly service: LoadBalancerService;
  readonly change: Change;
  /** Also says what the change is of: metadata, or the status. */
  readonly subresource: '' | '/status';
}

async function write({ send, service, change, subresource }: Writing, signal: AbortSignal): Promise<ServiceWrite> {
  const path = pathOf(service);
  let current = service;
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const changed = change(current);
    if (changed === 'outdated') return { status: 'outdated' };
    if (changed === undefined) return { status: 'unchanged', service: current };
    const { resourceVersion } = current;
    const body =
      subresource === ''
        ? { metadata: { resourceVersion, ...changed } }
        : { metadata: { resourceVersion }, status: changed };
    const answer = await send({ method: 'PATCH', path: `${path}${subresource}`, body }, signal);
    if (answer.status === 404) return { status: 'gone' };
    if (answer.status < 300) return { status: 'written', service: parseService(path, answer) };
    if (answer.status !== 409) throw refused('PATCH', `${path}${subresource}`, answer);
    const fresh = await read(send, path, signal);
    if (fresh === undefined || (fresh.uid !== service.uid && service.uid !== '')) return { status: 'gone' };
    current = fresh;
  }
  throw new ApiServerError(
    'api.conflict',
    `PATCH ${path}${subresource}: ${maxAttempts} times someone else changed the Service first; will be tried again`,
    { isRetryable: true, status: 409 },
  );
}

async function read(send: SendJson, path: string, signal: AbortSignal): Promise<LoadBalancerService | undefined> {
  const answer = await send({ method: 'GET', path }, signal);
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw refused('GET', path, answer);
  return parseService(path, answer);
}

function parseService(path: string, { body }: JsonAnswer): LoadBalancerService {
  const service = parsed(body);
  if (service === undefined) {
    throw new ApiServerError('api.service', `${path}: the answer is no Service; will be tried again`, {
      isRetryable: true,
    });
  }
  return service;
}

function parsed(body: string): LoadBalancerService | undefined {
  try {
    return serviceFromApi(JSON.parse(body) as V1Service); // the path says what it is
  } catch {
    return undefined;
  }
}

function pathOf({ record }: LoadBalancerService): string {
  const [namespace = '', name = ''] = record.key.split('/');
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/services/${encodeURIComponent(name)}`;
}

function refused(method: string, path: string, { status, body }: JsonAnswer): ApiServerError {
  const advice = status === 403 ? 'grant "get" and "patch" on services and services/status to this account; ' : '';
  return new ApiServerError(
    `api.${status}`,
    `${method} ${path}: answered ${status}: ${statusMessage(body)}; ${advice}will be tried again`,
    { isRetryable: true, status },
  );
}

/** Times in the API have whole seconds. */
function isoSeconds(time: Millis): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}
