import { join } from 'node:path';

/** Files of one HAProxy. All but the base are in its run directory. */
export interface HaproxyFiles {
  /** The constant part, see `renderBase`. */
  readonly base: string;
  readonly configuration: string;
  readonly adminSocket: string;
  readonly masterSocket: string;
  readonly serverState: string;
  /** Programs for weights begin so; a hash follows. */
  readonly weightsPrefix: string;
}

/** The paths of a run directory's files, with the base among them. */
export function haproxyFiles(runDirectory: string): HaproxyFiles {
  return {
    base: join(runDirectory, 'base.cfg'),
    configuration: join(runDirectory, 'haproxy.cfg'),
    adminSocket: join(runDirectory, 'admin.sock'),
    masterSocket: join(runDirectory, 'master.sock'),
    serverState: join(runDirectory, 'servers'),
    weightsPrefix: join(runDirectory, 'weights-'),
  };
}

/** Longest path of a run directory: HAProxy adds a name and a suffix to it, and 107 bytes is the kernel's limit. */
export const maxRunDirectoryLength = 70;
