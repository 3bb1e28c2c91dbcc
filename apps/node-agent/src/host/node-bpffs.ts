import { HostError, type Logger } from '@switchyard/core';
import type { KernelFiles } from '@switchyard/host';

/** What mounting asks of the machine and this process. */
export interface BpffsMachine {
  readonly files: KernelFiles;
  /** This process's id where it runs: 1 in a container. */
  readonly pid: number;
  readonly isBpffs: (path: string) => boolean;
  /** Throws `NativeError`. */
  readonly mount: (path: string) => void;
  readonly logger: Logger;
}

/**
 * Makes sure of the node's bpffs, in which maps, programs and links outlive the agent. A container that mounted one for itself would
 * lose them, and forwarding with them, when it ends: so there it is mounted only where the mount reaches the node. Throws
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
 * Mounts the node's bpffs for a later change of the mode, from a container whose mount reaches the node: after the change only the
 * agent's own container starts again, which may not mount. Does nothing elsewhere. A failure is a warning, since the mode runs without.
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

/** Whether what is mounted there is seen by others: the mount that holds the path is shared. */
function isShared(mountInfo: string, path: string): boolean {
  const holding = mountInfo
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , , , point = '']) => path === point || path.startsWith(point === '/' ? '/' : `${point}/`))
    .toSorted(([, , , , a = ''], [, , , , b = '']) => a.length - b.length)
    .at(-1);
  return holding?.slice(6, holding.indexOf('-')).some((word) => word.startsWith('shared:')) ?? false;
}
