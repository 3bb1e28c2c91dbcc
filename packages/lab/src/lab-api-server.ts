import { parseCidr } from '@switchyard/core';
import type { ObjectClient } from '@switchyard/core/kubernetes';
import { serviceCidrs } from './address-plan.ts';
import { createApiClient } from './api-client.ts';
import { listenInNamespace } from './apiserver/listen-in-namespace.ts';
import { type ApiServer, startApiServer } from './apiserver/server.ts';
import type { Lab } from './lab.ts';

/** Lab and port of another API server. */
export interface LabApiServerOptions {
  readonly lab: Lab;
  /** Port on the lab's API host; `startCluster` uses 6443. */
  readonly port: number;
}

/** An API server without controllers and Nodes: another cluster for a program that only watches. */
export interface LabApiServer extends AsyncDisposable {
  readonly server: ApiServer;
  /** A client of the server, over loopback. */
  readonly api: ObjectClient;
  readonly port: number;
}

/** Starts an API server on the machine's loopback (any port) and the API host's addresses. */
export async function startLabApiServer(options: LabApiServerOptions, signal: AbortSignal): Promise<LabApiServer> {
  const { lab, port } = options;
  await using stack = new AsyncDisposableStack();
  const cidrs = lab.ipFamilies.map((family) => parseCidr(serviceCidrs[family]));
  const server = stack.use(await startApiServer({ serviceCidrs: cidrs }));
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  await listenInLab(lab, { server, port }, signal);
  const api = stack.use(createApiClient({ url, name: 'lab' }));
  const owned = stack.move();
  return { server, api, port, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Makes a server listen on all addresses of the lab's API host. */
export async function listenInLab(
  lab: Lab,
  { server, port }: Pick<LabApiServer, 'server' | 'port'>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace } = lab.apiServer;
  const host = lab.ipFamilies.includes('IPv6') ? '::' : '0.0.0.0';
  await server.listen(await listenInNamespace({ namespace, host, port }, signal));
}
