import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { HostError, type IpAddress, tryParseIp, UsageError } from '@switchyard/core';
import type { Lab } from '../lab.ts';
import { runProgram } from '../run-program.ts';
import { type DockerEngine, emptyImage, machinePrograms } from './docker-engine.ts';

/** Options of a cluster that looks like one of kind. */
export interface KindClusterOptions {
  readonly lab: Lab;
  readonly engine: DockerEngine;
  /** Docker's network, which is joined to the lab: the container reaches the API server over it. */
  readonly network: string;
  /** As given to `kind create cluster --name`. Default `kind`, like kind's. */
  readonly name?: string;
  /** Port of its API server on the lab's API host, plain HTTP. Default 6443. */
  readonly port?: number;
}

/** A container that looks like the control plane of a kind cluster. */
export interface KindCluster extends AsyncDisposable {
  readonly name: string;
  readonly controlPlane: string;
  /** Of the container; the API server answers there on port 6443. */
  readonly addresses: readonly IpAddress[];
  /** Port on 127.0.0.1 of the engine's host where the API server answers too, as kind publishes it. */
  readonly publishedPort: number;
}

/**
 * Starts a container with the properties by which programs find a kind cluster: labels, name, network, a published port 6443, and
 * `/etc/kubernetes/admin.conf`, whose server is the container's own name. It forwards TLS connections on 6443 to the lab's API server.
 * Disposing it removes the container. Needs openssl.
 */
export async function startKindCluster(options: KindClusterOptions, signal: AbortSignal): Promise<KindCluster> {
  const { lab, engine, network, name = 'kind', port = 6443 } = options;
  if (!/^[a-z0-9.-]+$/.test(name)) throw new UsageError('docker.kind', `not a name for a kind cluster: ${name}`);
  const { IPv4, IPv6 } = lab.apiServer.addresses;
  const controlPlane = `${name}-control-plane`;
  const folder = `${lab.folder}/${controlPlane}`;
  await writeKubernetesFolder(folder, { name, controlPlane });
  const settings: readonly (readonly [option: string, value: string])[] = [
    ['--name', controlPlane],
    ['--hostname', controlPlane],
    ['--network', network],
    ['--label', `io.x-k8s.kind.cluster=${name}`],
    ['--label', 'io.x-k8s.kind.role=control-plane'],
    ['--publish', '127.0.0.1::6443/tcp'],
    ['--restart', 'on-failure:1'],
    ['--volume', `${folder}:/etc/kubernetes:ro`],
  ];
  const command = ['/node', '-e', relay, String(port), IPv4 ?? IPv6 ?? ''];
  signal.throwIfAborted();
  const remove = async (): Promise<void> => void (await engine.cli(['rm', '--force', controlPlane]));
  try {
    const image = await emptyImage(engine);
    await docker(engine, ['run', '--detach', ...settings.flat(), ...machinePrograms, image, ...command]);
    signal.throwIfAborted();
    return { name, controlPlane, ...(await describe(engine, controlPlane)), [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Terminates TLS and forwards connections. Closing one side closes the other. */
const relay = `
const [port, host] = process.argv.slice(1);
const fs = require('fs'), net = require('net'), tls = require('tls');
process.on('SIGTERM', () => process.exit(130)); // like kind's nodes, so that a restarted engine starts the container again
const pki = (name) => fs.readFileSync('/etc/kubernetes/pki/apiserver.' + name);
tls.createServer({ key: pki('key'), cert: pki('crt') }, (from) => {
  const to = net.connect(Number(port), host);
  from.on('error', () => to.destroy()).on('close', () => to.destroy());
  to.on('error', () => from.destroy()).on('close', () => from.destroy());
  from.pipe(to).pipe(from);
}).listen(6443, '::');
`;

/** Writes the part of `/etc/kubernetes` that clients of kind read: a kubeconfig in kubeadm's form, and the API server's key and certificate. */
async function writeKubernetesFolder(
  folder: string,
  { name, controlPlane }: Pick<KindCluster, 'name' | 'controlPlane'>,
): Promise<void> {
  await mkdir(`${folder}/pki`, { recursive: true });
  const [key, certificate] = [`${folder}/pki/apiserver.key`, `${folder}/pki/apiserver.crt`];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=kube-apiserver', '-addext', `subjectAltName=DNS:${controlPlane},IP:127.0.0.1`];
  const request = ['req', '-x509', ...kind, ...names, '-keyout', key, '-out', certificate];
  const { exitCode, stderr } = await runProgram('openssl', request);
  if (exitCode !== 0) throw new HostError('docker.kind', `openssl req -x509 ended with ${exitCode}: ${stderr.trim()}`);
  const authority = Buffer.from(await readFile(certificate)).toString('base64');
  const text = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${authority}
    server: https://${controlPlane}:6443
  name: ${name}
contexts:
- context:
    cluster: ${name}
    user: kubernetes-admin
  name: kubernetes-admin@${name}
current-context: kubernetes-admin@${name}
kind: Config
preferences: {}
users:
- name: kubernetes-admin
  user:
    token: lab-token
`;
  await writeFile(`${folder}/admin.conf`, text);
}

interface Inspected {
  readonly Ports: Readonly<Record<string, readonly { readonly HostPort: string }[] | null>>;
  readonly Networks: Readonly<Record<string, { readonly IPAddress: string; readonly GlobalIPv6Address: string }>>;
}

async function describe(
  engine: DockerEngine,
  container: string,
): Promise<Pick<KindCluster, 'addresses' | 'publishedPort'>> {
  const text = await docker(engine, ['inspect', '--format', '{{json .NetworkSettings}}', container]);
  const { Ports, Networks } = JSON.parse(text) as Inspected;
  const texts = Object.values(Networks).flatMap(({ IPAddress, GlobalIPv6Address }) => [IPAddress, GlobalIPv6Address]);
  return {
    addresses: texts.flatMap((one) => tryParseIp(one) ?? []),
    publishedPort: Number(Ports['6443/tcp']?.[0]?.HostPort),
  };
}

async function docker(engine: DockerEngine, args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await engine.cli(args);
  if (exitCode === 0) return stdout.trim();
  throw new HostError('docker.kind', `docker ${args[0]} for a kind cluster ended with ${exitCode}: ${stderr.trim()}`);
}
