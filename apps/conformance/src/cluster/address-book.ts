import { type IpAddress, type IpFamily, ipFamilyOf, parseIp, UsageError } from '@switchyard/core';
import { nodeAddresses } from '@switchyard/scenarios';
import type { NodePair } from './choose-nodes.ts';

/** Port of a scenario, with its protocol. */
type PortKey = `${number}/${string}`;

/**
 * Real addresses and ports by those of the scenario. The API server allocates cluster IPs, NodePorts and health check ports; once
 * allocated, they are requested again until `clear`.
 */
export class AddressBook {
  readonly #nodes: NodePair;
  readonly #clusterIps = new Map<IpAddress, IpAddress>();
  readonly #nodePorts = new Map<PortKey, number>();
  readonly #healthPorts = new Map<number, number>();

  constructor(nodes: NodePair) {
    this.#nodes = nodes;
  }

  /** Forgets all but the nodes. */
  clear(): void {
    this.#clusterIps.clear();
    this.#nodePorts.clear();
    this.#healthPorts.clear();
  }

  learnClusterIp(scenario: IpAddress, real: string): void {
    this.#clusterIps.set(scenario, parseIp(real));
  }

  clusterIp(scenario: IpAddress): IpAddress | undefined {
    return this.#clusterIps.get(scenario);
  }

  learnNodePort(scenario: number, protocol: string, real: number): void {
    this.#nodePorts.set(`${scenario}/${protocol}`, real);
  }

  nodePort(scenario: number, protocol: string): number | undefined {
    return this.#nodePorts.get(`${scenario}/${protocol}`);
  }

  learnHealthPort(scenario: number, real: number): void {
    this.#healthPorts.set(scenario, real);
  }

  healthPort(scenario: number): number | undefined {
    return this.#healthPorts.get(scenario);
  }

  /** node1's own address, the destination of flows to NodePorts. */
  nodeAddress(ipFamily: IpFamily): IpAddress {
    const address = this.#nodes.node1.addresses[ipFamily];
    if (address !== undefined) return address;
    throw new UsageError('cluster.family', `node ${this.#nodes.node1.name} has no ${ipFamily} address`);
  }

  /** Real destination of a packet that a scenario sends to a Service's address or to the node. External and load-balancer IPs stay as they are. */
  destination(to: IpAddress, port: number, protocol: string): { readonly address: IpAddress; readonly port: number } {
    const ipFamily = ipFamilyOf(to);
    if (to !== nodeAddresses[ipFamily]['node1']) return { address: this.#clusterIps.get(to) ?? to, port };
    return { address: this.nodeAddress(ipFamily), port: this.#nodePortFor(port, protocol) };
  }

  /** Falls back to another protocol's port: the API server gives one number to all protocols of a Service. */
  #nodePortFor(port: number, protocol: string): number {
    const own = this.nodePort(port, protocol);
    if (own !== undefined) return own;
    const others = ['TCP', 'UDP', 'SCTP'].flatMap((one) => this.nodePort(port, one) ?? []);
    return others[0] ?? port;
  }
}
