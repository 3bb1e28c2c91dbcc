import type { Logger } from '@switchyard/core';
import type { LoadBalancerService } from '../cluster/cluster-objects.ts';
import { OwnWrites } from './own-writes.ts';
import type { DesiredStatus } from './service-status.ts';
import type { ServiceWriter } from './service-writer.ts';

/** Writes Services, and remembers what it wrote until the watch shows it. Rejects as its writer does. */
export class TrackedWriter {
  readonly #writer: ServiceWriter;
  readonly #log: Logger;
  readonly own: OwnWrites = new OwnWrites();

  constructor(writer: ServiceWriter, log: Logger) {
    this.#writer = writer;
    this.#log = log;
  }

  /** The Service with our finalizer; undefined when it is deleted or being deleted: the watch delivers the new state. */
  async addFinalizer(service: LoadBalancerService, signal: AbortSignal): Promise<LoadBalancerService | undefined> {
    const write = await this.#writer.addFinalizer(service, signal);
    if (!('service' in write)) return undefined;
    this.own.remember(service, write.service);
    return write.service;
  }

  /** Removes our finalizer, and no other. */
  async removeFinalizer(service: LoadBalancerService, signal: AbortSignal): Promise<void> {
    const write = await this.#writer.removeFinalizer(service, signal);
    if ('service' in write) this.own.remember(service, write.service);
  }

  /** The Service as it is afterwards; undefined: it is gone. */
  async writeStatus(
    service: LoadBalancerService,
    desired: DesiredStatus,
    signal: AbortSignal,
  ): Promise<LoadBalancerService | undefined> {
    const write = await this.#writer.writeStatus(service, desired, signal);
    if (write.status === 'written') {
      const ready = desired.conditions.find(({ status }) => status === 'False')?.reason;
      const ingress = desired.ingress?.map(({ ip }) => ip);
      this.#log.info('status written', { service: service.record.key, addresses: ingress, notReady: ready });
    }
    if (!('service' in write)) return undefined;
    this.own.remember(service, write.service);
    return write.service;
  }
}
