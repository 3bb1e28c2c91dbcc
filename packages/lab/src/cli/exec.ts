import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { constants } from 'node:os';
import { ConfigError } from '@switchyard/core';
import { findCgroup2Mount } from '../cgroup.ts';
import { readClusterRecord } from '../cluster-record.ts';
import { labNamespaces } from '../destroy-lab.ts';
import { enterCommand } from '../namespace-host.ts';
import { checkLabName, labCgroup, namespaceName } from '../names.ts';
import { childEnvironment } from '../run-program.ts';

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
