import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { type Agent, type AgentOptions, Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { systemClock } from '@switchyard/core';
import {
  anonymousConnection,
  apiResources,
  fixedCredentials,
  newObjectClient,
  type ObjectClient,
} from '@switchyard/core/kubernetes';
import { connectorIn, type Lab, type LabProcess, type NamespaceConnector, serviceCidrs } from '@switchyard/lab';
import type { PeersOptions } from './options.ts';

const port = 6443;
const startTimeout = 90_000;

/** An API server that the proxies of a lab read, and a client of it. */
export interface BenchApiServer extends AsyncDisposable {
  readonly api: ObjectClient;
  /** For programs on the lab's nodes. */
  readonly kubeconfig: string;
}

/**
 * Starts etcd and kube-apiserver in the namespace of the lab's API host. Everybody with the token may do everything; the certificate
 * is the server's own. etcd does not wait for the disk.
 */
export async function startRealApiServer(
  lab: Lab,
  programs: NonNullable<PeersOptions['apiServer']>,
  signal: AbortSignal,
): Promise<BenchApiServer> {
  await using stack = new AsyncDisposableStack();
  const folder = `${lab.diskFolder}/apiserver`;
  await mkdir(folder, { recursive: true });
  const token = randomUUID();
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await writeFile(`${folder}/sa.key`, privateKey.export({ type: 'pkcs1', format: 'pem' }));
  await writeFile(`${folder}/tokens.csv`, `${token},bench,bench,system:masters\n`);
  const { apiServer: host } = lab;
  const address = host.addresses.IPv4 ?? '';
  const etcd = host.spawn(programs.etcd, etcdArgs(folder), { logName: 'etcd' });
  stack.defer(() => etcd.stop());
  const server = host.spawn(programs.kubeApiserver, serverArgs(folder, address), { logName: 'kube-apiserver' });
  stack.defer(() => server.stop());
  const url = new URL(`https://${address}:${port}`);
  const connection = { ...anonymousConnection(url), credentials: fixedCredentials(`Bearer ${token}`) };
  const agent = namespaceAgent(stack.use(connectorIn(host.namespace)), address, signal);
  stack.defer(() => agent.destroy());
  const api = stack.use(newObjectClient(connection, { clock: systemClock, userAgent: 'bench', agent }));
  await waitUntilReady(api, [etcd, server], signal);
  const kubeconfig = `${lab.folder}/kubeconfig`;
  await writeFile(kubeconfig, JSON.stringify(kubeconfigOf(url.origin, token)));
  const owned = stack.move();
  return { api, kubeconfig, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function etcdArgs(folder: string): readonly string[] {
  const [clients, peers] = ['http://127.0.0.1:2379', 'http://127.0.0.1:2380'];
  return [
    `--data-dir=${folder}/etcd`,
    `--listen-client-urls=${clients}`,
    `--advertise-client-urls=${clients}`,
    `--listen-peer-urls=${peers}`,
    `--initial-advertise-peer-urls=${peers}`,
    `--initial-cluster=default=${peers}`,
    '--unsafe-no-fsync',
    '--log-level=error',
  ];
}

function serverArgs(folder: string, address: string): readonly string[] {
  return [
    '--etcd-servers=http://127.0.0.1:2379',
    `--secure-port=${port}`,
    '--bind-address=0.0.0.0',
    `--advertise-address=${address}`,
    `--cert-dir=${folder}/certs`,
    `--service-cluster-ip-range=${serviceCidrs.IPv4}`,
    `--token-auth-file=${folder}/tokens.csv`,
    '--authorization-mode=AlwaysAllow',
    '--service-account-issuer=https://bench.invalid',
    `--service-account-key-file=${folder}/sa.key`,
    `--service-account-signing-key-file=${folder}/sa.key`,
    '--endpoint-reconciler-type=none',
  ];
}

/** Connections that begin in the namespace of the API server: nothing of it can be reached from this machine. */
function namespaceAgent({ connect }: NamespaceConnector, host: string, signal: AbortSignal): Agent {
  const openSecure = async (): Promise<Duplex> => {
    const secure = connectTls({ socket: await connect({ host, port }, signal), rejectUnauthorized: false });
    await once(secure, 'secureConnect');
    return secure;
  };
  return new (class extends HttpsAgent {
    override createConnection(
      _options: AgentOptions,
      finish?: (error: Error | null, stream: Duplex) => void,
    ): Duplex | null | undefined {
      void openSecure().then(
        (stream) => finish?.(null, stream),
        (error: Error) => finish?.(error, undefined as never),
      );
      return undefined;
    }
  })({ keepAlive: true, maxSockets: 32 });
}

async function waitUntilReady(api: ObjectClient, processes: readonly LabProcess[], signal: AbortSignal): Promise<void> {
  const end = Date.now() + startTimeout;
  let ended: string | undefined;
  for (const { ended: over, logFile } of processes)
    void over.then((status) => (ended = `a program ended with ${status}; see ${logFile}`));
  for (;;) {
    // The namespace `default` is made when the server has begun its work.
    const found = await api
      .find(apiResources.namespaces, { name: 'default' }, signal)
      .catch((error: unknown) => void (ended ??= Date.now() > end ? String(error) : undefined));
    if (found !== undefined) return;
    if (ended !== undefined) throw new Error(`the API server does not start: ${ended}`);
    await sleep(200, undefined, { signal });
  }
}

function kubeconfigOf(server: string, token: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bench', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'bench', user: { token } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    'current-context': 'bench',
  };
}
