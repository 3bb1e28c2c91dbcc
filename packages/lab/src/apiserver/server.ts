import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import { type Cidr, millis, type Millis, parseCidr, systemClock, UsageError } from '@switchyard/core';
import { type Access, createAccess } from './access.ts';
import { createAllocations } from './allocations.ts';
import { type Connect, connectHere } from './namespace-sockets.ts';
import { handleRequest, type ServerContext } from './http/handler.ts';
import { createDocuments } from './http/documents.ts';
import { FaultList, type Faults } from './http/faults.ts';
import type { WatchSession } from './http/watch.ts';
import { Lifecycle } from './registry/lifecycle.ts';
import { createRegistry, type Registry } from './registry/registry.ts';
import type { ResourceDefinition } from './resource.ts';
import { apiTime } from '../workloads/facts.ts';
import { addOnResources, resourceTable } from './resources/resource-table.ts';
import { betaEndpointSlices } from './resources/endpoint-slices.ts';
import { daemonSets } from './resources/deployments.ts';
import { Store } from './store.ts';
import { namespaces, serviceCidrs } from './resources/cluster-kinds.ts';

/** Options of an API server. All have defaults. */
export interface ApiServerOptions {
  /** Ranges of cluster IPs, at most one per family, the cluster's default family first. Default 10.96.0.0/12. */
  readonly serviceCidrs?: readonly Cidr[];
  /** Default 60 s. */
  readonly bookmarkInterval?: Millis;
  /** Compresses a watch that lists first for clients that take gzip, as API servers from 1.37 do (WatchListCompression). Default false. */
  readonly compressesWatchLists?: boolean;
  /** Events remembered for resuming watches, over all kinds. Default 100,000. */
  readonly historyLimit?: number;
  /** Runs the namespace controller and the garbage collector (owner references). Default true. */
  readonly hasLifecycle?: boolean;
  /** Opens connections to pods, for `pods/proxy`. Default: from this process's own network namespace. */
  readonly connect?: Connect;
  /** Also serves the kinds of an add-on's manifests: ConfigMap, ServiceAccount, DaemonSet, ClusterRole... Default false. */
  readonly hasAddOnKinds?: boolean;
  /** Also serves DaemonSets, without the other kinds of an add-on. Default false. */
  readonly hasDaemonSets?: boolean;
}

/** Address to listen on, or a listening socket, for example from another process. */
export type ListenTarget = { readonly host: string; readonly port: number } | NetServer;

/** A small Kubernetes API server, in memory. Disposing it closes all listeners and connections. */
export interface ApiServer extends AsyncDisposable {
  /** For reading state and history directly, and for `compact()`. */
  readonly store: Store;
  /** For writing without HTTP, with all of the server's rules. */
  readonly registry: Registry;
  readonly faults: Faults;
  /** Access rights and audit. */
  readonly access: Access;
  /** May be called several times: one server, several addresses. The url has no trailing slash. */
  listen(target: ListenTarget): Promise<{ readonly url: string }>;
  /** A kubeconfig file for clients that reach the server at `url`. */
  kubeconfig(url: string): string;
}

/** Starts a server that does not listen yet. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const clock = systemClock;
  const random = Math.random; // for cluster IPs, node ports and name suffixes
  const cidrs = options.serviceCidrs ?? [parseCidr('10.96.0.0/12')];
  const resources = servedKinds(options);
  const allocations = createAllocations(cidrs, random);
  const store = new Store(allocations, options.historyLimit ?? 100_000);
  const registry = createRegistry({ store, allocations, clock, random });
  createInitialObjects(registry, cidrs);
  const lifecycle = options.hasLifecycle === false ? undefined : new Lifecycle({ store, registry, resources });
  const context: ServerContext = {
    store,
    registry,
    // Served by path only; discovery shows the kinds of a current server.
    resources: [...resources, betaEndpointSlices],
    clock,
    bookmarkInterval: options.bookmarkInterval ?? millis(60_000),
    compressesWatchLists: options.compressesWatchLists ?? false,
    faults: new FaultList(),
    access: createAccess(),
    sessions: new Set(),
    documents: createDocuments(resources),
    connect: options.connect ?? connectHere,
  };
  const listeners = new Listeners((request, response) => void handleRequest(context, request, response));
  return {
    store,
    registry,
    faults: createFaults(context, listeners),
    access: context.access,
    listen: (target) => listeners.open(target),
    kubeconfig: (url) => kubeconfigFor(url, 'lab-token'),
    [Symbol.asyncDispose]: async () => {
      lifecycle?.[Symbol.dispose]();
      for (const session of context.sessions) session.end();
      await listeners.close();
    },
  };
}

function createFaults(context: ServerContext, listeners: Listeners): Faults {
  const each = (action: (session: WatchSession) => void): void => {
    for (const session of context.sessions) action(session);
  };
  return {
    inject: (fault, options = {}) => context.faults.add(fault, options),
    endWatches: (how) => each((session) => (how === 'clean' ? session.end() : session.reset())),
    holdWatches: () => {
      each((session) => session.hold());
      return { [Symbol.dispose]: () => each((session) => session.resume()) };
    },
    stop: (port) => listeners.refuse(port),
  };
}

/** All sockets on which one API server listens. */
class Listeners {
  readonly #servers: Server[] = [];
  readonly #onRequest: RequestListener;
  /** One entry per `refuse` in force. */
  readonly #refused = new Set<{ readonly port: number | undefined }>();

  constructor(onRequest: RequestListener) {
    this.#onRequest = onRequest;
  }

  async open(target: ListenTarget): Promise<{ readonly url: string }> {
    const server = createServer(this.#onRequest);
    server.keepAliveTimeout = 120_000;
    server.on('connection', (socket: Socket) => {
      if (this.#isRefused(server)) socket.destroy();
      else socket.setNoDelay(true);
    });
    this.#servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      if ('host' in target) server.listen(target.port, target.host, resolve);
      else server.listen(target, resolve);
    });
    const { address, port } = addressOf(server);
    const host = address.includes(':') ? `[${address}]` : address;
    return { url: `http://${host}:${port}` };
  }

  refuse(port: number | undefined): Disposable {
    const entry = { port };
    this.#refused.add(entry);
    for (const server of this.#servers) if (this.#isRefused(server)) server.closeAllConnections();
    return { [Symbol.dispose]: () => void this.#refused.delete(entry) };
  }

  #isRefused(server: Server): boolean {
    if (this.#refused.size === 0) return false;
    const { port } = addressOf(server);
    return [...this.#refused].some((one) => one.port === undefined || one.port === port);
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#servers.splice(0).map(
        (server) =>
          new Promise<void>((resolve) => {
            server.close(() => resolve());
            server.closeAllConnections();
          }),
      ),
    );
  }
}

function addressOf(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === 'string') {
    throw new UsageError('apiserver.listen', `listening on ${String(address)}: the API server needs a TCP socket`);
  }
  return address;
}

function servedKinds({ hasAddOnKinds, hasDaemonSets }: ApiServerOptions): readonly ResourceDefinition[] {
  if (hasAddOnKinds === true) return [...resourceTable, ...addOnResources];
  return hasDaemonSets === true ? [...resourceTable, daemonSets] : resourceTable;
}

/** Creates four namespaces and the default ServiceCIDR. */
function createInitialObjects(registry: Registry, cidrs: readonly Cidr[]): void {
  const options = { fieldValidation: 'Strict' } as const;
  for (const name of ['default', 'kube-node-lease', 'kube-public', 'kube-system']) {
    registry.create(namespaces, '', { metadata: { name } }, options);
  }
  const lastTransitionTime = apiTime(systemClock.now());
  const message = 'Kubernetes default Service CIDR is ready';
  const ready = { type: 'Ready', status: 'True', lastTransitionTime, reason: '', message };
  const body = { metadata: { name: 'kubernetes' }, spec: { cidrs }, status: { conditions: [ready] } };
  registry.create(serviceCidrs, '', body, options);
}

/** A kubeconfig for one server, as JSON, which is YAML too. The token is accepted but not required. */
function kubeconfigFor(url: string, token: string): string {
  const name = 'switchyard-lab';
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: url } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
    'current-context': name,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
