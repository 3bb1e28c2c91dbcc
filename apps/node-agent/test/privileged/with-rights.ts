import type { LabCluster } from '@switchyard/lab';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** The agent's own program. */
export const program: string = fileURLToPath(new URL('../../bin/switchyard-agent', import.meta.url));

/**
 * Makes a program that becomes the agent as in a container with these capabilities alone (such as `net_admin`) and kubelet's
 * mounts: /proc/sys and /sys read-only, no way to more rights. What is mounted below /sys, such as cgroup2, stays there: a DaemonSet mounts
 * it elsewhere. Returns its path.
 */
export async function withRights(cluster: LabCluster, ...names: readonly string[]): Promise<string> {
  const file = `${cluster.lab.folder}/${names.join('-')}`;
  const wanted = names.map((name) => `,+${name}`).join('');
  const text = `#!/bin/sh
set -e
exec unshare --mount sh -c '
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --rbind /sys /sys
mount -o remount,bind,ro /sys
exec setpriv --bounding-set=-all${wanted} --inh-caps=-all${wanted} --no-new-privs -- "$0" "$@"' ${program} "$@"
`;
  await writeFile(file, text, { mode: 0o755 });
  return file;
}
