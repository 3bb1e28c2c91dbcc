import type { V1EndpointSlice, V1Service } from '@kubernetes/client-node';
import { ApiServerError } from '@switchyard/core';
import { isDeepStrictEqual } from 'node:util';
import type { AddressBook } from './address-book.ts';
import { type KubeApi, type KubeRequest, refusal } from './kube-api.ts';
import type { WantedService } from './real-objects.ts';

/** Where objects are written. */
export interface ObjectPlace {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly book: AddressBook;
}

interface Held {
  /** What it was made of. */
  readonly wanted: WantedService;
  /** As the API server has it. */
  readonly object: V1Service;
}

/**
 * Makes the run's namespace hold exactly some Services and EndpointSlices, by the difference to what it holds: first the Services, then
 * the slices. What the API server hands out goes into the book.
 */
export class ObjectWriter {
  readonly #place: ObjectPlace;
  readonly #services = new Map<string, Held>();
  readonly #slices = new Map<string, V1EndpointSlice>();

  constructor(place: ObjectPlace) {
    this.#place = place;
  }

  /** What is not wanted any more goes first: its addresses and ports may be wanted again. */
  async writeServices(wanted: readonly WantedService[], signal: AbortSignal): Promise<void> {
    const names = new Set(wanted.map(({ object }) => nameOf(object)));
    const gone = [...this.#services.keys()].filter((name) => !names.has(name));
    await allDone(gone.map((name) => this.#removeService(name, signal)));
    await allDone(wanted.map((one) => this.#writeService(one, signal)));
  }

  async writeSlices(wanted: readonly V1EndpointSlice[], signal: AbortSignal): Promise<void> {
    const { api } = this.#place;
    const names = new Set(wanted.map(nameOf));
    const gone = [...this.#slices.keys()].filter((name) => !names.has(name));
    const remove = async (name: string): Promise<void> => {
      await api.remove(`${this.#slicesPath}/${name}`, signal);
      this.#slices.delete(name);
    };
    await allDone([...gone.map(remove), ...wanted.map((slice) => this.#writeSlice(slice, signal))]);
  }

  async #writeSlice(slice: V1EndpointSlice, signal: AbortSignal): Promise<void> {
    const { api } = this.#place;
    const name = nameOf(slice);
    const held = this.#slices.get(name);
    if (isDeepStrictEqual(held, slice)) return;
    const isSameKind = held?.addressType === slice.addressType;
    if (held !== undefined && !isSameKind) await api.remove(`${this.#slicesPath}/${name}`, signal);
    if (held !== undefined && isSameKind) await api.replace(`${this.#slicesPath}/${name}`, slice, signal);
    else await api.create(this.#slicesPath, slice, signal);
    this.#slices.set(name, slice);
  }

  async #writeService(wanted: WantedService, signal: AbortSignal): Promise<void> {
    const name = nameOf(wanted.object);
    const held = this.#services.get(name);
    if (held !== undefined && mustBeMadeAnew(held.wanted, wanted)) await this.#removeService(name, signal);
    const before = this.#services.get(name);
    if (before !== undefined && isDeepStrictEqual(before.wanted.service, wanted.service)) return;
    const written =
      before === undefined ? await this.#create(wanted, signal) : await this.#replace(before, wanted, signal);
    this.#learn(wanted, written);
    this.#services.set(name, { wanted, object: written }); // also when its status cannot be written: it is there
    const object = await this.#writeStatus(written, wanted, signal);
    this.#services.set(name, { wanted, object });
  }

  async #create({ object }: WantedService, signal: AbortSignal): Promise<V1Service> {
    const request = { method: 'POST', path: this.#servicesPath, body: object } as const;
    const written = await this.#tryWrite(request, signal);
    return written === 'taken' ? this.#place.api.create(this.#servicesPath, withoutChoice(object), signal) : written;
  }

  async #replace({ object: current }: Held, wanted: WantedService, signal: AbortSignal): Promise<V1Service> {
    const path = `${this.#servicesPath}/${nameOf(wanted.object)}`;
    const { metadata } = wanted.object;
    let version = current.metadata?.resourceVersion;
    for (let left = 1; ; left--) {
      const body = { ...wanted.object, metadata: { ...metadata, resourceVersion: version } };
      try {
        const written = await this.#tryWrite({ method: 'PUT', path, body }, signal);
        if (written !== 'taken') return written;
        await this.#removeService(nameOf(wanted.object), signal);
        return await this.#create(wanted, signal);
      } catch (error) {
        // Somebody else has written to it meanwhile, as controllers do.
        if (!(error instanceof ApiServerError) || error.status !== 409 || left === 0) throw error;
        version = (await this.#place.api.get<V1Service>(path, signal)).metadata?.resourceVersion;
      }
    }
  }

  /** `taken`: a NodePort or cluster IP that it names is somebody else's, or outside this cluster's range. */
  async #tryWrite(request: KubeRequest, signal: AbortSignal): Promise<V1Service | 'taken'> {
    const answer = await this.#place.api.send(request, signal);
    if (answer.status < 300) return JSON.parse(answer.text) as V1Service; // the path says what it is
    if (answer.status === 422 && /already allocated|not in the valid range/.test(answer.text)) return 'taken';
    throw refusal(request, answer);
  }

  async #writeStatus(written: V1Service, { ingress }: WantedService, signal: AbortSignal): Promise<V1Service> {
    const present = (written.status?.loadBalancer?.ingress ?? []).map(({ ip, ipMode }) => [ip, ipMode ?? 'VIP']);
    const desired = ingress.map(({ ip, ipMode }) => [ip, ipMode ?? 'VIP']);
    if (isDeepStrictEqual(present, desired)) return written;
    const change = { status: { loadBalancer: { ingress: ingress.length === 0 ? null : ingress } } };
    return this.#place.api.patch<V1Service>(`${this.#servicesPath}/${nameOf(written)}/status`, change, signal);
  }

  async #removeService(name: string, signal: AbortSignal): Promise<void> {
    await this.#place.api.remove(`${this.#servicesPath}/${name}`, signal);
    this.#services.delete(name);
  }

  #learn({ service }: WantedService, { spec }: V1Service): void {
    const { book } = this.#place;
    const [own, other] = spec?.clusterIPs ?? (spec?.clusterIP === undefined ? [] : [spec.clusterIP]);
    if (own !== undefined && own !== 'None' && service.clusterIP !== 'None' && service.type !== 'ExternalName') {
      book.learnClusterIp(service.clusterIP, own);
    }
    if (other !== undefined && service.otherClusterIP !== undefined) book.learnClusterIp(service.otherClusterIP, other);
    for (const [index, { nodePort, protocol }] of service.ports.entries()) {
      const real = spec?.ports?.[index]?.nodePort;
      if (nodePort !== undefined && real !== undefined) book.learnNodePort(nodePort, protocol, real);
    }
    const { healthCheckNodePort } = service;
    if (healthCheckNodePort !== undefined && spec?.healthCheckNodePort !== undefined) {
      book.learnHealthPort(healthCheckNodePort, spec.healthCheckNodePort);
    }
  }

  get #servicesPath(): string {
    return `/api/v1/namespaces/${this.#place.namespace}/services`;
  }

  get #slicesPath(): string {
    return `/apis/discovery.k8s.io/v1/namespaces/${this.#place.namespace}/endpointslices`;
  }
}

/** Waits for all, also when one fails: what is still being written then would be in the way of what follows. Rejects as the first that did. */
async function allDone(writes: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(writes)).find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

/** The API server changes neither a cluster IP nor a health check port, nor the class of a load balancer that stays one. */
function mustBeMadeAnew({ service: before }: WantedService, { service: after }: WantedService): boolean {
  const isNamed = before.type === 'ExternalName' || after.type === 'ExternalName';
  const movesHealth =
    before.healthCheckNodePort !== undefined &&
    after.healthCheckNodePort !== undefined &&
    before.healthCheckNodePort !== after.healthCheckNodePort;
  return (!isNamed && before.clusterIP !== after.clusterIP) || movesHealth;
}

function withoutChoice({ spec, ...rest }: V1Service): V1Service {
  const { clusterIP, clusterIPs: _ips, healthCheckNodePort: _health, ports = [], ...others } = spec ?? {};
  return {
    ...rest,
    spec: {
      ...others,
      ...(clusterIP === 'None' ? { clusterIP } : {}),
      ports: ports.map(({ nodePort: _port, ...port }) => port),
    },
  };
}

function nameOf({ metadata }: V1Service | V1EndpointSlice): string {
  return metadata?.name ?? '';
}
