import { readFileSync, writeFileSync } from 'node:fs';
import { HostError } from '@switchyard/core';

/** Kernel settings that are files: `/proc/sys/...`, `/sys/module/...`. */
export interface KernelFiles {
  /** Returns the trimmed content; undefined if the file does not exist. Throws `HostError`. */
  read(path: string): string | undefined;
  /** Writes an existing file. Throws `HostError` with the errno name. */
  write(path: string, value: string): void;
}

/** Settings of this machine. `root` is a prefix of each path, for tests. */
export function kernelFiles(root = ''): KernelFiles {
  return {
    read: (path) => {
      try {
        return readFileSync(`${root}${path}`, 'utf8').trim();
      } catch (error) {
        const cause = error as NodeJS.ErrnoException; // the only type that node:fs throws
        if (cause.code === 'ENOENT') return undefined;
        throw new HostError('host.setting', `cannot read ${path}: ${cause.code ?? cause.message}`, { cause });
      }
    },
    write: (path, value) => {
      try {
        writeFileSync(`${root}${path}`, value, { flag: 'r+' }); // never creates a file
      } catch (error) {
        const cause = error as NodeJS.ErrnoException;
        throw new HostError('host.setting', `cannot write ${value} to ${path}: ${cause.code ?? cause.message}`, {
          cause,
        });
      }
    },
  };
}

/** The file of a sysctl such as `net.netfilter.nf_conntrack_max`. */
export function sysctlPath(name: string): string {
  return `/proc/sys/${name.replaceAll('.', '/')}`;
}
