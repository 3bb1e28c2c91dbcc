import type { ServiceForwarding, TableDelta } from '../forwarding/forwarding-table.ts';
import type { Logger } from '../log.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { ReconcileEvents } from './reconcile-events.ts';

/** Recipients of the warnings. */
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

  /** Notes what an apply changed. */
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
