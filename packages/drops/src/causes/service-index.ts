import {
  diffTables,
  type ForwardingTable,
  type IpAddress,
  type Protocol,
  type ServiceForwarding,
  type ServicePortKey,
} from '@switchyard/core';

/** Port of a packet or of a frontend, with its protocol. */
export interface ServerPlace {
  readonly protocol: Protocol;
  readonly address: IpAddress;
  readonly port: number;
}

/**
 * Finds the Services of a packet in a forwarding table. It follows a sequence of tables at the cost of their differences, since a
 * scan of 30,000 Services for each dropped packet would take seconds.
 */
export class ServiceIndex {
  #table: ForwardingTable | undefined;
  readonly #byFrontend = new Places();
  readonly #byClusterIp = new Places();
  readonly #byEndpoint = new Places();

  /** The table that the next questions are about. */
  follow(table: ForwardingTable): void {
    if (table === this.#table) return;
    const { upserted, removed } = diffTables(this.#table, table);
    for (const key of [...removed, ...upserted.map((service) => service.key)]) {
      const before = this.#table?.services.get(key);
      if (before !== undefined) this.#each(before, (places, place) => places.remove(place, key));
    }
    for (const service of upserted) this.#each(service, (places, place) => places.add(place, service.key));
    this.#table = table;
  }

  /** The Service port with this frontend. `isLocal`: whether it is an address of the node, on which NodePorts answer. */
  serviceAt({ protocol, address, port }: ServerPlace, isLocal: boolean): ServiceForwarding | undefined {
    const exact = this.#byFrontend.get(`${protocol} ${address} ${port}`);
    const found = exact ?? (isLocal ? this.#byFrontend.get(`${protocol} anyNodePortAddress ${port}`) : undefined);
    return this.#services(found)[0];
  }

  /** Service ports with this cluster IP, on any port. */
  servicesWithClusterIp(address: IpAddress): readonly ServiceForwarding[] {
    return this.#services(this.#byClusterIp.get(address));
  }

  /** Service ports that have this endpoint, usable or not. */
  servicesOfEndpoint({ protocol, address, port }: ServerPlace): readonly ServiceForwarding[] {
    return this.#services(this.#byEndpoint.get(`${protocol} ${address} ${port}`));
  }

  #services(keys: ReadonlySet<ServicePortKey> | undefined): readonly ServiceForwarding[] {
    return [...(keys ?? [])].flatMap((key) => this.#table?.services.get(key) ?? []);
  }

  #each(service: ServiceForwarding, visit: (places: Places, place: string) => void): void {
    for (const { kind, address, port } of service.frontends) {
      visit(this.#byFrontend, `${service.protocol} ${address} ${port}`);
      if (kind === 'clusterIP') visit(this.#byClusterIp, address);
    }
    for (const { address, port } of service.knownEndpoints) {
      visit(this.#byEndpoint, `${service.protocol} ${address} ${port}`);
    }
  }
}

/** Service ports by place. */
class Places {
  readonly #keys = new Map<string, Set<ServicePortKey>>();

  get(place: string): ReadonlySet<ServicePortKey> | undefined {
    return this.#keys.get(place);
  }

  add(place: string, key: ServicePortKey): void {
    const keys = this.#keys.get(place);
    if (keys === undefined) this.#keys.set(place, new Set([key]));
    else keys.add(key);
  }

  remove(place: string, key: ServicePortKey): void {
    const keys = this.#keys.get(place);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(place);
  }
}
