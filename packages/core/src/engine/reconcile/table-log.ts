import type { ServiceForwarding, TableDelta } from '../../model/forwarding/forwarding-table.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import type { Logger } from '../../base/log.ts';
import type { NodeName, ServicePortKey } from '../../model/records/keys.ts';
import type { BackendCapabilities } from '../dataplane-backend.ts';
import type { ReconcileEvents } from './reconcile-events.ts';
import type { NodeRecord } from '../../model/records/node.ts';

/** Feature of a Service that a backend may lack; the API's field name. */
export type OptionalFeature = 'sessionAffinity' | 'loadBalancerSourceRanges';

/** Returns features that the service needs and the backend lacks. Empty for most. */
export function missingFeatures(
  service: ServiceForwarding,
  capabilities: BackendCapabilities,
): readonly OptionalFeature[] {
  const missing: OptionalFeature[] = [];
  if (!capabilities.sessionAffinity && service.sessionAffinity.kind !== 'none') missing.push('sessionAffinity');
  const isRestricted = service.frontends.some((frontend) => frontend.allowedSources !== 'any');
  if (!capabilities.sourceRanges && isRestricted) missing.push('loadBalancerSourceRanges');
  return missing;
}

/**
 * Warns once for each service that needs a missing feature, and again when its missing features change. Without source
 * ranges, for example, a service is open to every source.
 */
export class MissingFeatureLog {
  readonly #options: {
    readonly ipFamily: IpFamily;
    readonly capabilities: BackendCapabilities;
    readonly logger: Logger;
  };
  readonly #warned = new Map<ServicePortKey, string>();

  constructor(options: {
    readonly ipFamily: IpFamily;
    readonly capabilities: BackendCapabilities;
    readonly logger: Logger;
  }) {
    this.#options = options;
  }

  /** Notes the changes of an apply. */
  note(delta: Pick<TableDelta, 'upserted' | 'removed'>): void {
    const { ipFamily, capabilities, logger } = this.#options;
    for (const key of delta.removed) this.#warned.delete(key);
    for (const service of delta.upserted) {
      const lacks = missingFeatures(service, capabilities);
      const text = lacks.join();
      const before = this.#warned.get(service.key) ?? '';
      if (text === before) continue;
      if (text === '') {
        this.#warned.delete(service.key);
        continue;
      }
      this.#warned.set(service.key, text);
      logger.warn('service needs a feature that this dataplane lacks; it is forwarded without', {
        ipFamily,
        service: service.key,
        lacks,
      });
    }
  }
}

/** Receivers of the warnings. */
export interface ApiServerLogOptions {
  readonly logger: Logger;
  readonly events: ReconcileEvents;
}

/** Warns once for each Service port that claims an address of the API server, and again when the addresses change. */
export class ApiServerLog {
  readonly #options: ApiServerLogOptions;
  readonly #warned = new Map<ServicePortKey, string>();

  constructor(options: ApiServerLogOptions) {
    this.#options = options;
  }

  /** Notes the changes of an apply. */
  note(delta: Pick<TableDelta, 'upserted' | 'removed'>): void {
    const { logger, events } = this.#options;
    for (const key of delta.removed) this.#warned.delete(key);
    for (const service of delta.upserted) {
      const addresses = exempted(service);
      const text = addresses.join(', ');
      if (text === (this.#warned.get(service.key) ?? '')) continue;
      this.#warned.set(service.key, text);
      if (text === '') continue;
      logger.warn('service claims an address of the API server; this address is not forwarded', {
        service: service.key,
        addresses,
      });
      events.apiServerAddressRefused(service.key, text);
    }
  }
}

function exempted({ lostFrontends }: ServiceForwarding): readonly string[] {
  return lostFrontends.flatMap(({ winner, frontend: { address, port } }) =>
    winner === 'apiServer' ? [address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`] : [],
  );
}

/** Limit of remembered Services and values; beyond it they are logged again. */
const maxRemembered = 1000;

/** Warns once for each Service and `ipMode` of its status that this node does not know. All families share one log. */
export class IpModeLog {
  readonly #logger: Logger;
  readonly #warned = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Notes the changes of an apply. */
  note({ upserted }: Pick<TableDelta, 'upserted'>): void {
    for (const { service, frontends } of upserted) {
      for (const { ipMode } of frontends) {
        if (ipMode === undefined || ipMode.takenAs === ipMode.written) continue;
        const key = `${service} ${ipMode.written}`;
        if (this.#warned.has(key)) continue;
        if (this.#warned.size >= maxRemembered) this.#warned.clear();
        this.#warned.add(key);
        this.#logger.warn('unknown ipMode of a load-balancer IP; its traffic is captured as with VIP', {
          service,
          ipMode: ipMode.written.slice(0, 200),
        });
      }
    }
  }
}

/** Reasons for a 503 of /healthz (KEP-3836), for the operator. */
const leaving = 'the Node has the taint ToBeDeletedByClusterAutoscaler, or is being deleted';
const unknown = 'the cluster has no such Node; check --hostname-override';

/** Logs when /healthz begins to answer 503 because of the Node of this agent, and when that ends. */
export class EligibilityLog {
  readonly #nodeName: NodeName;
  readonly #logger: Logger;
  #reason: string | undefined;

  constructor(nodeName: NodeName, logger: Logger) {
    this.#nodeName = nodeName;
    this.#logger = logger;
  }

  /** Notes the present Node of this agent, once all Nodes were listed; undefined when there is none. */
  note(node: NodeRecord | undefined): void {
    const reason = node === undefined ? unknown : node.isEligible ? undefined : leaving;
    if (reason === this.#reason) return;
    this.#reason = reason;
    const nodeName = this.#nodeName;
    if (reason === undefined) this.#logger.info('load balancers may use this node again', { nodeName });
    else this.#logger.warn('load balancers must not use this node: /healthz answers 503', { nodeName, reason });
  }
}
