import { ApiServerError, type IpAddress, type IpFamily, ipFamilyOf, parseIp, UsageError } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import type { EndpointSlice, ObjectClient, ObjectRef, Service } from '@switchyard/core/kubernetes';
import { nodeAddresses } from '@switchyard/scenarios';
import { assignedAddresses, pairAddresses } from './load-balancing.ts';
import type { NodePair } from './preflight.ts';
import type { WantedService } from './real-objects.ts';
import { isDeepStrictEqual } from 'node:util';

export interface ObjectPlace {
  readonly api: ObjectClient;
  readonly namespace: string;
  readonly book: AddressBook;
}

const { services } = apiResources;
const takenText = /already allocated|not in the valid range/;

interface Held {
  readonly wanted: WantedService;
  /** The Service as the API server returned it. */
  readonly object: Service;
}

/**
 * Makes the run's namespace hold exactly some Services and EndpointSlices by writing the difference: first the Services, then the
 * slices. Records what the API server allocates in the address book.
 */
export class ObjectWriter {
  readonly #place: ObjectPlace;
  readonly #services = new Map<string, Held>();
  readonly #slices = new Map<string, EndpointSlice>();

  constructor(place: ObjectPlace) {
    this.#place = place;
  }

  /** Removes unwanted Services first: others may need their addresses and ports. */
  async writeServices(wanted: readonly WantedService[], signal: AbortSignal): Promise<void> {
    const names = new Set(wanted.map(({ object }) => nameOf(object)));
    const gone = [...this.#services.keys()].filter((name) => !names.has(name));
    await allDone(gone.map((name) => this.#removeService(name, signal)));
    await allDone(wanted.map((one) => this.#writeService(one, signal)));
  }

  async writeSlices(wanted: readonly EndpointSlice[], signal: AbortSignal): Promise<void> {
    const { api } = this.#place;
    const names = new Set(wanted.map(nameOf));
    const gone = [...this.#slices.keys()].filter((name) => !names.has(name));
    const remove = async (name: string): Promise<void> => {
      await api.delete(apiResources.endpointSlices, this.#ref(name), {}, signal);
      this.#slices.delete(name);
    };
    await allDone([...gone.map(remove), ...wanted.map((slice) => this.#writeSlice(slice, signal))]);
  }

  async #writeSlice(slice: EndpointSlice, signal: AbortSignal): Promise<void> {
    const { api } = this.#place;
    const slices = apiResources.endpointSlices;
    const name = nameOf(slice);
    const held = this.#slices.get(name);
    if (isDeepStrictEqual(held, slice)) return;
    const isSameKind = held?.addressType === slice.addressType;
    if (held !== undefined && !isSameKind) await api.delete(slices, this.#ref(name), {}, signal);
    if (held !== undefined && isSameKind) await api.update(slices, slice, signal);
    else await api.create(slices, slice, signal);
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
    this.#services.set(name, { wanted, object: written }); // even if its status cannot be written: the Service exists
    const object = await (wanted.balancing === 'runner'
      ? this.#writeStatus(written, wanted, signal)
      : this.#learnAssigned(written, wanted, signal));
    this.#services.set(name, { wanted, object });
  }

  async #create({ object }: WantedService, signal: AbortSignal): Promise<Service> {
    const { api } = this.#place;
    const written = await orTaken(api.create(services, object, signal));
    return written === 'taken' ? api.create(services, withoutChoice(object), signal) : written;
  }

  async #replace({ object: current }: Held, wanted: WantedService, signal: AbortSignal): Promise<Service> {
    const { api } = this.#place;
    const { metadata } = wanted.object;
    let resourceVersion = current.metadata.resourceVersion ?? '';
    for (let left = 1; ; left--) {
      const object = { ...wanted.object, metadata: { ...metadata, resourceVersion } };
      try {
        const written = await orTaken(api.update(services, object, signal));
        if (written !== 'taken') return written;
        await this.#removeService(nameOf(wanted.object), signal);
        return await this.#create(wanted, signal);
      } catch (error) {
        // A controller has written to it in between.
        if (!(error instanceof ApiServerError) || error.status !== 409 || left === 0) throw error;
        const found = await api.get(services, this.#ref(nameOf(object)), signal);
        resourceVersion = found.metadata.resourceVersion ?? '';
      }
    }
  }

  async #writeStatus(written: Service, { ingress }: WantedService, signal: AbortSignal): Promise<Service> {
    const present = (written.status?.loadBalancer?.ingress ?? []).map(({ ip, ipMode }) => [ip, ipMode ?? 'VIP']);
    const desired = ingress.map(({ ip, ipMode }) => [ip, ipMode ?? 'VIP']);
    if (isDeepStrictEqual(present, desired)) return written;
    const body = { status: { loadBalancer: { ingress: ingress.length === 0 ? null : ingress } } };
    const status = { ...this.#ref(nameOf(written)), subresource: 'status' } as const;
    return this.#place.api.patch(services, status, { kind: 'merge', body }, signal);
  }

  /** Waits for the load-balancer IPs of a controller. */
  async #learnAssigned(written: Service, { ingress, balancing }: WantedService, signal: AbortSignal): Promise<Service> {
    if (ingress.length === 0 || balancing === 'nowhere') return written;
    const { api, book } = this.#place;
    const assigned = await assignedAddresses(api, this.#ref(nameOf(written)), signal);
    const planned = ingress.map(({ ip }) => parseIp(ip ?? ''));
    for (const [plan, real] of pairAddresses(planned, assigned)) book.loadBalancerIps.set(plan, real);
    return api.get(services, this.#ref(nameOf(written)), signal);
  }

  async #removeService(name: string, signal: AbortSignal): Promise<void> {
    await this.#place.api.delete(services, this.#ref(name), {}, signal);
    this.#services.delete(name);
  }

  #learn({ service }: WantedService, { spec }: Service): void {
    const { book } = this.#place;
    const [own, other] = spec?.clusterIPs ?? (spec?.clusterIP === undefined ? [] : [spec.clusterIP]);
    if (own !== undefined && own !== 'None' && service.clusterIP !== 'None' && service.type !== 'ExternalName') {
      book.clusterIps.set(service.clusterIP, parseIp(own));
    }
    if (other !== undefined && service.otherClusterIP !== undefined)
      book.clusterIps.set(service.otherClusterIP, parseIp(other));
    for (const [index, { nodePort, protocol }] of service.ports.entries()) {
      const real = spec?.ports?.[index]?.nodePort;
      if (nodePort !== undefined && real !== undefined) book.nodePorts.set(`${nodePort}/${protocol}`, real);
    }
    const { healthCheckNodePort } = service;
    if (healthCheckNodePort !== undefined && spec?.healthCheckNodePort !== undefined) {
      book.healthPorts.set(healthCheckNodePort, spec.healthCheckNodePort);
    }
  }

  #ref(name: string): ObjectRef {
    return { namespace: this.#place.namespace, name };
  }
}

/** `taken`: a NodePort or cluster IP of the Service belongs to another one, or is outside this cluster's range. */
async function orTaken(writing: Promise<Service>): Promise<Service | 'taken'> {
  try {
    return await writing;
  } catch (error) {
    const isTaken = error instanceof ApiServerError && error.status === 422 && takenText.test(error.message);
    if (isTaken) return 'taken';
    throw error;
  }
}

/** Waits for all, also when one fails: writes that still run would disturb later ones. Rejects with the first error. */
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

function withoutChoice({ spec, ...rest }: Service): Service {
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

function nameOf({ metadata }: Service | EndpointSlice): string {
  return metadata.name ?? '';
}

type PortKey = `${number}/${string}`;

/**
 * Real addresses and ports by those of the scenario. The API server allocates cluster IPs, NodePorts and health check ports; once
 * allocated, they are requested again until `clear`.
 */
export class AddressBook {
  readonly #nodes: NodePair;
  readonly clusterIps: Map<IpAddress, IpAddress> = new Map();
  readonly nodePorts: Map<PortKey, number> = new Map();
  readonly healthPorts: Map<number, number> = new Map();
  readonly loadBalancerIps: Map<IpAddress, IpAddress> = new Map();

  constructor(nodes: NodePair) {
    this.#nodes = nodes;
  }

  /** Forgets all but the nodes. */
  clear(): void {
    this.clusterIps.clear();
    this.nodePorts.clear();
    this.healthPorts.clear();
    this.loadBalancerIps.clear();
  }

  /** node1's own address, the destination of flows to NodePorts. */
  nodeAddress(ipFamily: IpFamily): IpAddress {
    const address = this.#nodes.node1.addresses[ipFamily];
    if (address !== undefined) return address;
    throw new UsageError('cluster.family', `node ${this.#nodes.node1.name} has no ${ipFamily} address`);
  }

  /** Real destination of a packet that a scenario sends to a Service's address or to the node. Addresses that no controller assigned stay as they are. */
  destination(to: IpAddress, port: number, protocol: string): { readonly address: IpAddress; readonly port: number } {
    const ipFamily = ipFamilyOf(to);
    if (to !== nodeAddresses[ipFamily]['node1'])
      return { address: this.clusterIps.get(to) ?? this.loadBalancerIps.get(to) ?? to, port };
    return { address: this.nodeAddress(ipFamily), port: this.#nodePortFor(port, protocol) };
  }

  /** Falls back to another protocol's port: the API server gives one number to all protocols of a Service. */
  #nodePortFor(port: number, protocol: string): number {
    const known = [protocol, 'TCP', 'UDP', 'SCTP'].flatMap((one) => this.nodePorts.get(`${port}/${one}`) ?? []);
    return known[0] ?? port;
  }
}
