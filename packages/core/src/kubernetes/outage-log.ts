import type { Logger } from '../base/log.ts';
import type { ResourceKind } from '../model/state/cluster-event.ts';
import type { Clock } from '../base/time.ts';
import type { ApiFailure } from './api-failure.ts';

/** Logs the first failure of an outage, and its end. */
export class OutageLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #resource: ResourceKind;
  #lostAt: number | undefined;
  #failures = 0;

  constructor(log: Logger, clock: Clock, resource: ResourceKind) {
    this.#log = log;
    this.#clock = clock;
    this.#resource = resource;
  }

  /** Notes a failed attempt. Failures after the first are logged at debug level. */
  lost(failure: ApiFailure): void {
    this.#failures++;
    const fields = { resource: this.#resource, error: failure.message, status: failure.status };
    if (this.#lostAt !== undefined) return this.#log.debug('still no connection to the API server', fields);
    this.#lostAt = this.#clock.monotonic();
    this.#log.warn('lost the API server; forwarding stays as it is', fields);
  }

  /** Notes that a list or a watch works. Returns whether that ends an outage. */
  recovered(): boolean {
    if (this.#lostAt === undefined) return false;
    const duration = this.#clock.monotonic() - this.#lostAt;
    this.#log.info('the API server is back', { resource: this.#resource, duration, failures: this.#failures });
    this.#lostAt = undefined;
    this.#failures = 0;
    return true;
  }
}
