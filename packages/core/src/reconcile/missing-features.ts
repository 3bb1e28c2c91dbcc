import type { ServiceForwarding, TableDelta } from '../forwarding/forwarding-table.ts';
import type { IpFamily } from '../ip/address.ts';
import type { Logger } from '../log.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { BackendCapabilities } from './dataplane-backend.ts';

/** Something a Service asks for that a backend may not be able to do; the API's field name. */
export type OptionalFeature = 'sessionAffinity' | 'loadBalancerSourceRanges';

/** What the service asks for and the backend does not do. Empty for most. */
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
 * Warns once for each service that gets less than it asks for, and again only when what it lacks
 * changes: unfiltered source ranges are open to everybody, which nobody should find out by accident.
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

  /** Takes note of what an apply changed. */
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
      logger.warn('service asks for what this dataplane does not do; it is forwarded without', {
        ipFamily,
        service: service.key,
        lacks,
      });
    }
  }
}
