import { readdir, readFile, rm } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { ConfigError, HostError, ipFamilies, millis, systemClock } from '@switchyard/core';
import { hostAddresses } from '../network-plan.ts';
import { type ClusterRecord, isAlive, type LabRecord, readClusterRecord, readLabRecord } from '../lab-record.ts';
import { checkMachine, planHosts } from '../namespace-lab.ts';
import { destroyLab, type LabListing, labNamespaces, listLabs, pidsInNamespace } from '../destroy-lab.ts';
import { checkLabName, daemonLog, labCgroup, labFolder, labsRoot, namespaceName } from '../names.ts';
import type { LabChoice, UpOptions } from './options.ts';
import { findCgroup2Mount } from '../cgroup.ts';
import { enterCommand } from '../namespace-host.ts';
import { childEnvironment } from '../run-program.ts';
import { nodeProgram } from '../program-path.ts';

export async function describeLabs(): Promise<readonly string[]> {
  const labs = await listLabs();
  if (labs.length === 0) return ['no labs'];
  return labs.map(({ name, status, record, hosts }) => {
    const owner = record === undefined ? 'no record' : `owner ${record.owner.pid}, since ${record.createdAt}`;
    const nodes = hosts.filter((host) => /^node[0-9]+$/.test(host)).length;
    const remedy = status === 'dead' ? `; remove it with ./dev lab down --name ${name}` : '';
    return `${name}: ${status}, ${nodes} nodes, ${owner}${remedy}`;
  });
}

/** `lab status`: the lab, how to reach its API server, and a line for each host and pod with its programs. */
export async function describeLab(name: string): Promise<readonly string[]> {
  const lab = (await listLabs()).find((candidate) => candidate.name === name);
  if (lab === undefined) throw new ConfigError('lab.none', `there is no lab ${name}; ./dev lab list shows all`);
  const cluster = await readClusterRecord(name);
  const server = cluster === undefined ? 'none' : `${cluster.url} (inside: ${cluster.insideUrl})`;
  const hosts = await Promise.all(lab.hosts.map((host) => describeHost(lab, host)));
  return [
    `lab ${name}: ${lab.status}, owner ${lab.record?.owner.pid ?? 'unknown'}, folder ${labFolder(name)}`,
    `API server: ${server}`,
    ...(cluster === undefined ? [] : [`KUBECONFIG=${cluster.kubeconfig}`]),
    ...hosts,
  ];
}

async function describeHost(lab: LabListing, host: string): Promise<string> {
  const plan = planHosts(lab.record?.nodes ?? 0).find(({ name }) => name === host);
  const families = lab.record?.ipFamilies ?? ipFamilies;
  const addresses = plan === undefined ? ['pod'] : Object.values(hostAddresses(plan.number, families));
  const pids = await pidsInNamespace(namespaceName(lab.name, host));
  const programs = await Promise.all(pids.map(describeProgram));
  return `  ${host.padEnd(10)} ${addresses.join(' ')}${programs.length === 0 ? '' : `  [${programs.join(', ')}]`}`;
}

async function describeProgram(pid: number): Promise<string> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  const words = text.split('\0').filter(Boolean);
  // The script's name says more than `node`.
  const script = words.find((word) => /\.(ts|js|mjs)$/.test(word));
  return `${(script ?? words[0] ?? '?').replace(/^.*\//, '')} ${pid}`;
}

const grace = millis(15_000);

/** Stops the owners of the labs and removes the labs. Yields the name of each removed lab. */
export async function* takeDown(choice: LabChoice, signal: AbortSignal): AsyncGenerator<string> {
  const listings = await listLabs();
  const present = new Set(listings.map(({ name }) => name));
  for (const name of chosen(choice, listings)) {
    const record = await readLabRecord(name);
    if (record !== undefined) await stopOwner(record, signal);
    await destroyLab(name);
    await rm(daemonLog(name), { force: true });
    if (present.has(name)) yield name;
  }
}

/** Ignores remains without a record for `dead`: their owner may be removing them at this moment. */
function chosen(choice: LabChoice, listings: readonly LabListing[]): readonly string[] {
  if (choice !== 'all' && choice !== 'dead') return choice;
  const isChosen = ({ status, record }: LabListing): boolean =>
    choice === 'all' || (status === 'dead' && record !== undefined);
  return listings.filter(isChosen).map(({ name }) => name);
}

/** Sends SIGTERM, so that the owner removes its lab; SIGKILL after 15 s. */
async function stopOwner(record: LabRecord, signal: AbortSignal): Promise<void> {
  const { owner } = record;
  if (!(await isAlive(owner)) || owner.pid === process.pid) return;
  process.kill(owner.pid, 'SIGTERM');
  const until = systemClock.monotonic() + grace;
  while (await isAlive(owner)) {
    if (systemClock.monotonic() > until) process.kill(owner.pid, 'SIGKILL');
    await systemClock.sleep(millis(50), signal);
  }
}

/** Host and command of `lab exec`. */
export interface ExecRequest {
  readonly name: string;
  readonly host: string;
  readonly command: readonly string[];
}

/** Runs a command in a host or pod of any process's lab with this terminal; resolves with its exit code. */
export async function execInLab(request: ExecRequest): Promise<number> {
  const { name, host } = request;
  checkLabName(name);
  const namespace = namespaceName(name, host);
  const namespaces = await labNamespaces(name);
  if (namespaces.length === 0) throw new ConfigError('lab.none', `there is no lab ${name}; ./dev lab list shows all`);
  if (!namespaces.includes(namespace)) {
    const hosts = namespaces.map((other) => other.slice(namespaceName(name, '').length)).join(', ');
    throw new ConfigError('lab.host', `lab ${name} has no host ${host}; it has ${hosts}`);
  }
  const [file = 'sh', ...args] = request.command;
  const [program, ...rest] = enterCommand({ namespace, cgroup: await findHostCgroup(name, host) }, file, args);
  const kubeconfig = (await readClusterRecord(name))?.insideKubeconfig;
  const environment = childEnvironment(kubeconfig === undefined ? {} : { KUBECONFIG: kubeconfig });
  const child = spawn(program, rest, { stdio: 'inherit', env: environment });
  // The terminal's ^C also reaches the command; this process stays to return its exit code.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exitCode, signal) =>
      resolve(exitCode ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  });
  process.off('SIGINT', ignore);
  return code;
}

/** Hosts have a cgroup of their own; a pod's is in its node's cgroup. */
async function findHostCgroup(lab: string, host: string): Promise<string | undefined> {
  const mount = await findCgroup2Mount();
  if (mount === undefined) return undefined;
  const root = labCgroup(mount, lab);
  const folders = async (path: string): Promise<readonly string[]> =>
    (await readdir(path, { withFileTypes: true }).catch(() => []))
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${path}/${entry.name}`);
  const hosts = await folders(root);
  const pods = (await Promise.all(hosts.map(folders))).flat();
  return [...hosts, ...pods].find((path) => path.endsWith(`/${host}`));
}

export type DaemonMessage =
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'ready'; readonly record: ClusterRecord }
  | { readonly kind: 'failed'; readonly message: string };

/**
 * Starts a background process that builds and owns the cluster, and waits until it is ready. Aborting `signal` before
 * that, or the end of this process, makes the daemon remove the unfinished lab.
 */
export async function bringUp(
  options: UpOptions,
  onProgress: (text: string) => void,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  checkLabName(options.name);
  await checkMachine(options.ipFamilies);
  mkdirSync(labsRoot, { recursive: true });
  const logFile = daemonLog(options.name);
  const log = openSync(logFile, 'w');
  const daemon = spawn(process.execPath, [...nodeProgram('lab-daemon'), JSON.stringify(options)], {
    env: childEnvironment(),
    stdio: ['ignore', log, log, 'ipc'],
    detached: true,
  });
  closeSync(log);
  const outcome = Promise.withResolvers<ClusterRecord>();
  daemon.on('message', (message: DaemonMessage) => {
    if (message.kind === 'progress') onProgress(message.text);
    else if (message.kind === 'ready') outcome.resolve(message.record);
    else outcome.reject(new HostError('lab.up', message.message));
  });
  daemon.once('error', (cause) => outcome.reject(cause));
  daemon.once('exit', (code, name) => {
    const tail = readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join('\n');
    const message = `the lab's background process ended (${code ?? name}) before it was ready; ${logFile} ends with:\n${tail}`;
    outcome.reject(new HostError('lab.up', message));
  });
  const ended = new Promise<void>((resolve) => {
    daemon.once('exit', () => resolve());
    daemon.once('error', () => resolve()); // the daemon could not start
  });
  const onAbort = (): void => void daemon.kill('SIGTERM');
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const record = await outcome.promise;
    signal.throwIfAborted();
    return record;
  } catch (error) {
    await ended; // the daemon removes its lab before it ends
    if (!signal.aborted) throw error;
    rmSync(logFile, { force: true });
    throw new HostError('lab.interrupted', `interrupted; the unfinished lab ${options.name} has been removed`);
  } finally {
    signal.removeEventListener('abort', onAbort);
    if (daemon.connected) daemon.disconnect();
    daemon.unref();
  }
}
