import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LabNode, LabProcess } from '@switchyard/lab';
import type { Rendered } from './rendered.ts';

// Runs a container of a pod as its manifest says, but for the image: the program is this checkout's, on this machine's
// files. A mount namespace of its own gives it the ConfigMap, the service account and nothing to write to.

const agent = fileURLToPath(new URL('../../../bin/switchyard-agent', import.meta.url));

/** What the volumes of a pod hold. */
export interface PodFiles {
  /** Keys of the ConfigMap kube-proxy. Rewrite the folder's files to change it under a running pod. */
  readonly config: Readonly<Record<string, string>>;
  readonly token: string;
}

/** Mounts what every pod has, makes everything else read-only and becomes the container's command. */
const script = `
mount -t tmpfs tmpfs /var
mkdir -p /var/lib/kube-proxy /var/run/secrets/kubernetes.io
mount --bind "$PODFILES/config" /var/lib/kube-proxy
ln -s "$PODFILES/serviceaccount" /var/run/secrets/kubernetes.io/serviceaccount
mount -t tmpfs tmpfs /usr/local/bin
ln -s "$AGENT" /usr/local/bin/kube-proxy
mount -t tmpfs -o ro tmpfs /tmp
for place in /usr/local/bin /var / ; do mount -o remount,bind,ro "$place"; done
exec "$@"
`;

/** Writes the volumes' contents below `folder`. */
export async function writePodFiles(folder: string, files: PodFiles): Promise<void> {
  await mkdir(join(folder, 'config'), { recursive: true });
  await mkdir(join(folder, 'serviceaccount'), { recursive: true });
  for (const [key, text] of Object.entries(files.config)) await writeFile(join(folder, 'config', key), text);
  await writeFile(join(folder, 'serviceaccount/token'), files.token);
  await writeFile(join(folder, 'serviceaccount/ca.crt'), '');
}

/** The command line of a container with its variables filled in, as kubelet does. */
function commandOf(container: Rendered, env: Readonly<Record<string, string>>): readonly string[] {
  const command: readonly string[] = [...container.command, ...(container.args ?? [])];
  return command.map((part) => part.replaceAll(/\$\((\w+)\)/g, (reference, name: string) => env[name] ?? reference));
}

function environmentOf(container: Rendered, node: LabNode): Readonly<Record<string, string>> {
  const values: Readonly<Record<string, string>> = {
    'spec.nodeName': node.nodeName,
    'metadata.name': `${container.name}-x7b2k`,
    'metadata.namespace': 'kube-system',
  };
  const variables = (container.env ?? []).map((variable: Rendered) => [
    variable.name,
    variable.value ?? values[variable.valueFrom.fieldRef.fieldPath],
  ]);
  return Object.fromEntries(variables) as Readonly<Record<string, string>>;
}

/** Starts a container on a node with the command, environment and capabilities of its manifest. */
export function startContainer(node: LabNode, container: Rendered, folder: string): LabProcess {
  const rights = capabilityArgs(container.securityContext ?? {});
  const args = ['--mount', '--propagation=private', '--', 'sh', '-euc', script, 'pod', ...rights];
  const own = environmentOf(container, node);
  const env = { ...own, PODFILES: folder, AGENT: agent };
  return node.spawn('unshare', [...args, ...commandOf(container, own)], { env, logName: container.name });
}

/** The arguments that take away what the security context does not give. */
function capabilityArgs(context: Rendered): readonly string[] {
  if (context.privileged === true) return [];
  if (!context.capabilities.drop.includes('ALL')) throw new Error('a container that is not privileged drops ALL');
  const added = context.capabilities.add.map((name: string) => `+${name.toLowerCase()}`);
  const lists = ['-all', ...added].join(',');
  const newPrivileges = context.allowPrivilegeEscalation === false ? ['--no-new-privs'] : [];
  return ['setpriv', ...newPrivileges, `--bounding-set=${lists}`, `--inh-caps=${lists}`, '--'];
}
