import { readFileSync, writeFileSync } from 'node:fs';
import { HostError } from '@switchyard/core';

/** Settings of the kernel that are files: `/proc/sys/...`, `/sys/module/...`. */
export interface KernelFiles {
  /** The content without white space around it; undefined when there is no such file. Throws `HostError`. */
  read(path: string): string | undefined;
  /** Throws `HostError` that says what was refused. */
  write(path: string, value: string): void;
}

/** This machine's settings. `root` stands before each path; for tests. */
export function kernelFiles(root = ''): KernelFiles {
  return {
    read: (path) => {
      try {
        return readFileSync(`${root}${path}`, 'utf8').trim();
      } catch (error) {
        const cause = error as NodeJS.ErrnoException; // node:fs throws nothing else
        if (cause.code === 'ENOENT') return undefined;
        throw new HostError('host.setting', `cannot read ${path}: ${cause.code ?? cause.message}`, { cause });
      }
    },
    write: (path, value) => {
      try {
        writeFileSync(`${root}${path}`, value, { flag: 'r+' }); // never makes a file
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
