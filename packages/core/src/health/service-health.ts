import * as check from '../base/argument.ts';
import { InvariantError, messageOf } from '../base/errors.ts';
import { type EventRecorder, serviceSubject, type Logger } from '../base/log.ts';
import type { HealthCheck } from '../model/forwarding/forwarding-table.ts';
import { type IpAddress, type IpFamily, requireIpFamily } from '../model/ip/address.ts';
import type { Port } from '../model/ip/port.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { NodeName, ServiceKey } from '../model/records/keys.ts';
import { type Clock, type Millis, seconds } from '../base/time.ts';
import { announcementOf, type HealthClient, HealthClients } from './health-clients.ts';
import { type HttpAnswer, type HttpRequest, jsonAnswer } from './http-answer.ts';
import type { HttpListener, HttpSocket } from './http-listener.ts';

/** Options of the healthCheckNodePort servers of one family. */
export interface ServiceHealthOptions {
  readonly ipFamily: IpFamily;
  /** Node of this agent, for events. */
  readonly nodeName: NodeName;
  readonly listener: HttpListener;
  /**
   * Returns the present NodePort addresses of the family: `['any']` when NodePorts answer everywhere.
   * Called by every `sync` and `followAddresses`.
   */
  readonly addresses: () => readonly (IpAddress | 'any')[];
  /** Returns `ProxyHealth.isLive`. Node eligibility is no part of it. */
  readonly isProxyLive: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly events: EventRecorder;
}

/** The server of one Service: a socket per address, one answer for all of them. */
interface Instance {
  readonly port: Port;
  readonly sockets: Map<IpAddress | 'any', HttpSocket>;
  readonly clients: HealthClients;
  /** Of CLOCK_MONOTONIC. */
  readonly since: Millis;
  localEndpoints: number;
  isClosed: boolean;
  hasFailed: boolean;
}

const retryInterval: Millis = seconds(5);
/** Most load balancers check more often. */
const learningTime: Millis = seconds(15);

/**
 * The healthCheckNodePort servers of one family. They answer 200 while this node has a ready local endpoint and the proxy is
 * live, else 503, on any path. Call `sync` only after a successful apply: the servers must not announce endpoints that the
 * kernel does not serve yet.
 *
 * An unavailable port affects only its own Service: a warning and an Event when it begins to fail, then a new attempt at
 * every sync and every five seconds.
 */
export class ServiceHealth implements AsyncDisposable {
  readonly #options: ServiceHealthOptions;
  readonly #instances = new Map<ServiceKey, Instance>();
  readonly #stop = new AbortController();
  /** Serialises the tasks that open or close sockets. */
  #work: Promise<void> = Promise.resolve();
  #retry: Promise<void> | undefined;
  #hasNoAddresses = false;
  /** Sockets that no longer listen but still have connections. */
  readonly #released = new Set<HttpSocket>();

  /** Throws `UsageError` for options of other types. */
  constructor(options: ServiceHealthOptions) {
    check.requireFields('ServiceHealth: options', options, {
      ipFamily: requireIpFamily,
      nodeName: check.requireText,
      listener: check.withMethods('listen'),
      addresses: check.requireFunction,
      isProxyLive: check.requireFunction,
      clock: check.requireClock,
      logger: check.requireLogger,
      metrics: check.requireMetrics,
      events: check.withMethods('record'),
    });
    this.#options = options;
  }

  /**
   * Makes `checks` the whole set of servers: closes removed and moved ones first, opens new ones, updates the counts of the
   * others. Resolves when every socket is open or has failed.
   */
  sync(checks: ReadonlyMap<ServiceKey, HealthCheck>): Promise<void> {
    return this.#enqueue(async () => {
      await this.#closeStale(checks);
      for (const { service, port, localReadyEndpoints: localEndpoints } of checks.values()) {
        const known = this.#instances.get(service);
        if (known !== undefined) known.localEndpoints = localEndpoints;
        else {
          const since = this.#options.clock.monotonic();
          const clients = new HealthClients();
          const fresh = { port, sockets: new Map(), clients, since, isClosed: false, hasFailed: false };
          this.#instances.set(service, { ...fresh, localEndpoints });
        }
      }
      await this.#openMissing();
    });
  }

  /** Who checks a Service; undefined without a health check of it, and while it is too new for that none has come to mean that there are none. */
  clientsOf(service: ServiceKey): readonly HealthClient[] | undefined {
    const instance = this.#instances.get(service);
    const now = this.#options.clock.monotonic();
    const clients = instance?.clients.current(now) ?? [];
    return instance === undefined || (clients.length === 0 && now - instance.since < learningTime)
      ? undefined
      : clients;
  }

  /** Opens servers on new addresses and closes those on removed ones, without a change of the checks. */
  followAddresses(): Promise<void> {
    return this.#enqueue(() => this.#openMissing());
  }

  /** Closes all servers and connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#retry;
    await this.#enqueue(() => this.#closeStale(new Map()));
    await Promise.all([...this.#released].map((socket) => socket[Symbol.asyncDispose]()));
  }

  #enqueue(task: () => Promise<void>): Promise<void> {
    const result = this.#work.then(task);
    this.#work = result.catch(() => undefined); // the caller gets the failure; the next task must still run
    return result;
  }

  /** Frees the port at once; connected clients still get an answer. */
  #release(socket: HttpSocket): void {
    this.#released.add(socket);
    void socket.release().then(() => this.#released.delete(socket));
  }

  async #closeStale(checks: ReadonlyMap<ServiceKey, HealthCheck>): Promise<void> {
    for (const [service, instance] of this.#instances) {
      if (checks.get(service)?.port === instance.port) continue;
      instance.isClosed = true;
      this.#instances.delete(service);
      for (const socket of instance.sockets.values()) this.#release(socket);
      this.#options.logger.info('health check closed', { service, port: instance.port });
    }
  }

  async #openMissing(): Promise<void> {
    if (this.#instances.size === 0) return;
    const addresses = this.#addressesNow();
    if (addresses === undefined) return this.#retryLater();
    let hasFailed = false;
    for (const [service, instance] of this.#instances) {
      for (const [address, socket] of instance.sockets) {
        if (addresses.includes(address)) continue;
        instance.sockets.delete(address);
        this.#release(socket);
      }
      const error = await this.#open(service, instance, addresses);
      if (error !== undefined) hasFailed = true;
      this.#report(service, instance, error);
    }
    if (hasFailed) this.#retryLater();
  }

  /** Returns the present addresses. Undefined when they cannot be read, for example without a free descriptor: servers stay. */
  #addressesNow(): readonly (IpAddress | 'any')[] | undefined {
    const { addresses, logger, ipFamily } = this.#options;
    try {
      const found = addresses();
      this.#hasNoAddresses = false;
      return found;
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      if (!this.#hasNoAddresses)
        logger.warn('addresses for health checks cannot be read, will retry', { ipFamily, error });
      this.#hasNoAddresses = true;
      return undefined;
    }
  }

  /** Opens missing sockets. Each address may fail alone, since a load balancer checks only one of them. */
  async #open(service: ServiceKey, instance: Instance, addresses: readonly (IpAddress | 'any')[]): Promise<unknown> {
    const { ipFamily, listener } = this.#options;
    let failure: unknown;
    for (const address of addresses) {
      if (instance.sockets.has(address)) continue;
      try {
        const target = { ipFamily, address, port: instance.port };
        instance.sockets.set(
          address,
          await listener.listen(target, (request) => this.#answer(service, instance, request)),
        );
      } catch (error) {
        failure ??= error;
      }
    }
    return failure;
  }

  #report(service: ServiceKey, instance: Instance, error: unknown): void {
    const { logger, metrics, ipFamily, nodeName, events } = this.#options;
    const { port } = instance;
    if (error !== undefined) metrics.add('switchyard_health_check_listen_failures_total', { ip_family: ipFamily });
    if ((error !== undefined) === instance.hasFailed) return;
    instance.hasFailed = error !== undefined;
    if (error === undefined) return logger.info('health check listens now', { service, port, ipFamily });
    logger.warn('health check cannot listen, will retry', { service, port, ipFamily, error });
    const [namespace = '', name = ''] = service.split('/');
    const what = messageOf(error);
    events.record({
      type: 'Warning',
      reason: 'FailedToStartServiceHealthcheck',
      action: 'Listen',
      regarding: serviceSubject({ namespace, name }),
      note: `node ${nodeName} does not answer the healthCheckNodePort of ${service}, will retry: ${what}`,
    });
  }

  #retryLater(): void {
    if (this.#retry !== undefined || this.#stop.signal.aborted) return;
    this.#retry = this.#options.clock.sleep(retryInterval, this.#stop.signal).then(
      () => {
        this.#retry = undefined;
        return this.#enqueue(() => this.#openMissing());
      },
      () => undefined, // disposed
    );
  }

  #answer(service: ServiceKey, instance: Instance, { client, headers }: HttpRequest): HttpAnswer {
    const { clock } = this.#options;
    const isProxyLive = this.#options.isProxyLive();
    // A connection that outlives its Service must get a 503.
    const localEndpoints = instance.isClosed ? 0 : instance.localEndpoints;
    const isHealthy = localEndpoints > 0 && isProxyLive;
    const announced = announcementOf(headers);
    if (client !== undefined) instance.clients.note(client, { isHealthy, announced }, clock.monotonic());
    const [namespace, name] = service.split('/');
    return jsonAnswer(
      isHealthy ? 200 : 503,
      { service: { namespace, name }, localEndpoints, serviceProxyHealthy: isProxyLive },
      { 'X-Load-Balancing-Endpoint-Weight': String(localEndpoints) },
    );
  }
}
