import type { TableDelta } from '../forwarding/forwarding-table.ts';
import type { Logger } from '../log.ts';

/** Services and values beyond this number are forgotten, and named again. */
const maxRemembered = 1000;

/** Warns once for each Service and `ipMode` of its status that this node does not know. All families share one log. */
export class IpModeLog {
  readonly #logger: Logger;
  readonly #warned = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Notes what an apply changed. */
  note({ upserted }: Pick<TableDelta, 'upserted'>): void {
    for (const { service, frontends } of upserted) {
      for (const { ipMode } of frontends) {
        if (ipMode === undefined || ipMode.takenAs === ipMode.written) continue;
        const key = `${service} ${ipMode.written}`;
        if (this.#warned.has(key)) continue;
        if (this.#warned.size >= maxRemembered) this.#warned.clear();
        this.#warned.add(key);
        this.#logger.warn('ipMode of a load-balancer IP is not known; its traffic is captured as with VIP', {
          service,
          ipMode: ipMode.written.slice(0, 200),
        });
      }
    }
  }
}
