import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LabNode, LabProcess } from '@switchyard/lab';
import type { Rendered } from './rendered.ts';

// Runs a container of a pod as its manifest says, but for the image: the program is this checkout's, on this machine's
// files. A mount namespace of its own gives it its ConfigMaps, a service account and nothing to write to.

const checkout = fileURLToPath(new URL('../../../../..', import.meta.url)).replace(/\/$/, '');
const agent = join(checkout, 'apps/node-agent/bin/switchyard-agent');

/** A pod on a node: what its volumes hold. */
export interface PodFiles {
  /** Where the volumes' files are written, below /run. */
  readonly folder: string;
  /** Data of each ConfigMap by its name, for those that the pod's volumes name. */
  readonly configMaps: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/**
 * Hides /var, /etc, /tmp and /usr/local/bin behind file systems of its own, but not the checkout, wherever it is; puts the
 * volumes where the manifest says, makes everything read-only (/sys too: parameters of kernel modules are the machine's) and
 * becomes the container's command. $MOUNTS: pairs of mount path and folder, one on a line.
 */
const script = `
cache=$(cat /etc/ld.so.cache | base64 -w0)
mkdir -p "$KEPT"
mount --bind "$CHECKOUT" "$KEPT"
for place in /var /etc /usr/local/bin /tmp; do mount -t tmpfs tmpfs "$place"; done
if [ ! -e "$AGENT" ]; then
  mkdir -p "$CHECKOUT"
  mount --bind "$KEPT" "$CHECKOUT"
fi
echo "$cache" | base64 -d > /etc/ld.so.cache
ln -s "$AGENT" /usr/local/bin/kube-proxy
echo "$MOUNTS" | while read -r path folder; do
  mkdir -p "$path"
  mount --bind "$folder" "$path"
done
for place in /usr/local/bin /etc /var /tmp /sys /; do mount -o remount,bind,ro "$place"; done
exec "$@"
`;

const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Starts a container of a pod with the command, environment, volumes and capabilities of its manifest. */
export async function startContainer(
  node: LabNode,
  pod: { readonly spec: Rendered; readonly container: Rendered },
  files: PodFiles,
): Promise<LabProcess> {
  const { spec, container } = pod;
  const own = environmentOf(container, node);
  const mounts = await writeVolumes(spec, container, files);
  const places = { AGENT: agent, CHECKOUT: checkout, KEPT: join(files.folder, 'checkout') };
  const env = { ...own, ...places, MOUNTS: mounts.map((pair) => pair.join(' ')).join('\n') };
  const rights = capabilityArgs(container.securityContext ?? {});
  const args = ['--mount', '--propagation=private', '--', 'sh', '-euc', script, 'pod', ...rights];
  return node.spawn('unshare', [...args, ...commandOf(container, own)], { env, logName: container.name });
}

async function writeVolumes(
  spec: Rendered,
  container: Rendered,
  { folder, configMaps }: PodFiles,
): Promise<readonly (readonly [path: string, folder: string])[]> {
  const secret = await writeFolder(join(folder, 'serviceaccount'), { token: 'a-token', 'ca.crt': '' });
  const mounts: (readonly [string, string])[] = [[serviceAccount, secret]];
  for (const { name, mountPath } of container.volumeMounts ?? []) {
    const volume = spec.volumes.find((one: Rendered) => one.name === name);
    if (volume.configMap === undefined) continue; // hostPath: this machine's is in place
    const data = configMaps[volume.configMap.name];
    if (data === undefined) throw new Error(`volume ${name}: no ConfigMap ${volume.configMap.name}`);
    mounts.push([mountPath, await writeFolder(join(folder, name), data)]);
  }
  return mounts;
}

async function writeFolder(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

/** The command line with its variables filled in, as kubelet does. */
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

/** The arguments that take away what the security context does not give. */
function capabilityArgs(context: Rendered): readonly string[] {
  if (context.privileged === true) return [];
  if (!context.capabilities.drop.includes('ALL')) throw new Error('a container that is not privileged drops ALL');
  const added = context.capabilities.add.map((name: string) => `+${name.toLowerCase()}`);
  const lists = ['-all', ...added].join(',');
  const newPrivileges = context.allowPrivilegeEscalation === false ? ['--no-new-privs'] : [];
  return ['setpriv', ...newPrivileges, `--bounding-set=${lists}`, `--inh-caps=${lists}`, '--'];
}
