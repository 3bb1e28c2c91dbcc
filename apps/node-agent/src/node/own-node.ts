import {
  type Cidr,
  cidrFamilyOf,
  type ClusterStateView,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  isEqual,
  type Logger,
  type NodeRecord,
} from '@switchyard/core';
import type { RunConfig } from '../config/run-config.ts';

interface OwnNodeOptions {
  readonly config: Pick<RunConfig, 'nodeName' | 'bindAddress'>;
  readonly state: ClusterStateView;
  readonly logger: Logger;
}

/**
 * The agent's Node with its last known addresses and pod ranges. They stay while the cluster has none: if the Node is deleted,
 * or registers again without addresses, this machine keeps forwarding. `bindAddress` replaces the address of its family, and
 * makes that family the primary one.
 */
export class OwnNode {
  readonly #options: OwnNodeOptions;
  #seen: NodeRecord | undefined;
  #addresses: readonly IpAddress[] = [];
  #podCidrs: readonly Cidr[] = [];

  constructor(options: OwnNodeOptions) {
    this.#options = options;
  }

  /** Whether an address of the Node is known, from the cluster or from `bindAddress`. */
  get hasAddress(): boolean {
    this.#update();
    return this.#options.config.bindAddress !== undefined || this.#addresses.length > 0;
  }

  get podCidrs(): readonly Cidr[] {
    this.#update();
    return this.#podCidrs;
  }

  /** The family of the Node's first address; undefined while none is known. */
  get primaryFamily(): IpFamily | undefined {
    this.#update();
    const first = this.#options.config.bindAddress ?? this.#addresses[0];
    return first === undefined ? undefined : ipFamilyOf(first);
  }

  /** The Node's address of a family: the first InternalIP, else the first ExternalIP; undefined when it has none. */
  addressOf(ipFamily: IpFamily): IpAddress | undefined {
    this.#update();
    const given = this.#options.config.bindAddress;
    if (given !== undefined && ipFamilyOf(given) === ipFamily) return given;
    return this.#addresses.find((address) => ipFamilyOf(address) === ipFamily);
  }

  podCidrOf(ipFamily: IpFamily): Cidr | undefined {
    this.#update();
    return this.#podCidrs.find((cidr) => cidrFamilyOf(cidr) === ipFamily);
  }

  /** Updates addresses and ranges from the Node if it has any. Cheap: unchanged records are the same objects. */
  #update(): void {
    const { config, state, logger } = this.#options;
    const node = state.nodes.get(config.nodeName);
    if (node === this.#seen) return;
    if (node === undefined)
      logger.warn('the Node was deleted; its last addresses and pod ranges stay in use', { node: config.nodeName });
    this.#seen = node;
    const addresses = node?.addresses ?? [];
    if (addresses.length > 0 && !isEqual(addresses, this.#addresses)) {
      logger.info('addresses of the Node', { addresses, before: this.#addresses });
      this.#addresses = addresses;
    }
    const podCidrs = node?.podCidrs ?? [];
    if (podCidrs.length > 0 && !isEqual(podCidrs, this.#podCidrs)) {
      logger.info('pod ranges of the Node', { podCidrs, before: this.#podCidrs });
      this.#podCidrs = podCidrs;
    }
  }
}
