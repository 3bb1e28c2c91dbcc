import { HostError, type Logger } from '@switchyard/core';
import type { KernelFiles } from '@switchyard/host';

/** Access to the machine and this process for mounting. */
export interface BpffsMachine {
  readonly files: KernelFiles;
  /** Id of this process in its pid namespace: 1 in a container. */
  readonly pid: number;
  readonly isBpffs: (path: string) => boolean;
  /** Throws `NativeError`. */
  readonly mount: (path: string) => void;
  readonly logger: Logger;
}

/**
 * Mounts the node's bpffs if it is missing; in it maps, programs and links outlive the agent. A bpffs of the container alone would
 * end with the container, and with it forwarding, so a container mounts it only if the mount propagates to the node. Throws
 * `HostError` and `NativeError`.
 */
export function mountNodeBpffs(path: string, machine: BpffsMachine): void {
  const { files, pid, isBpffs, mount, logger } = machine;
  if (isBpffs(path)) return;
  if (pid === 1 && !isShared(files.read('/proc/self/mountinfo') ?? '', path)) {
    throw new HostError(
      'host.bpffs',
      `no bpffs is at ${path}, and one mounted in this container would end with it, and forwarding too: mount the node's ` +
        '/sys/fs/bpf there, and let a privileged container with mountPropagation: Bidirectional run --init-only once, as ' +
        'deploy/kustomize/overlays/ebpf does',
    );
  }
  mount(path);
  logger.info('mounted bpffs', { path });
}

/**
 * Mounts the node's bpffs for a later change of the mode, from a container whose mounts propagate to the node. After the change only
 * the agent's container restarts, which may not mount. Does nothing elsewhere. A failure is a warning: this mode needs no bpffs.
 */
export function mountBpffsForLater(path: string, machine: BpffsMachine): void {
  const { files, pid, logger } = machine;
  if (pid !== 1 || !isShared(files.read('/proc/self/mountinfo') ?? '', path)) return;
  try {
    mountNodeBpffs(path, machine);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    logger.warn('cannot mount bpffs; a change to the ebpf mode needs it', { path, error });
  }
}

/** Whether mounts at the path propagate: the mount that holds it is shared. */
function isShared(mountInfo: string, path: string): boolean {
  const holding = mountInfo
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , , , point = '']) => path === point || path.startsWith(point === '/' ? '/' : `${point}/`))
    .toSorted(([, , , , a = ''], [, , , , b = '']) => a.length - b.length)
    .at(-1);
  return holding?.slice(6, holding.indexOf('-')).some((word) => word.startsWith('shared:')) ?? false;
}
