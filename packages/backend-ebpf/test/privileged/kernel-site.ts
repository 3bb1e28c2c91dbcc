import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type IpFamily, type Logger, noopLogger } from '@switchyard/core';
import { findMount, mountBpffs } from '@switchyard/native';
import { LinuxKernel, type LinuxKernelOptions } from '../../src/kernel/programs/linux-kernel.ts';

/** A bpffs and a cgroup of a test's own; all that is pinned and attached ends with them. */
export class KernelSite implements Disposable {
  readonly bpffs: string;
  readonly cgroup: string;

  constructor(name: string) {
    const mount = findMount('cgroup2');
    if (mount === undefined) throw new Error('cgroup2 is not mounted');
    this.bpffs = mkdtempSync(join(tmpdir(), `swy-${name}-`));
    mountBpffs(this.bpffs);
    this.cgroup = join(mount, `swy-${name}-${process.pid}`);
    mkdirSync(this.cgroup, { recursive: true });
  }

  kernel(
    options: Partial<LinuxKernelOptions> & { readonly ipFamily?: IpFamily; readonly logger?: Logger } = {},
  ): LinuxKernel {
    return new LinuxKernel({
      ipFamily: 'IPv4',
      cgroup: () => this.cgroup,
      bpffs: this.bpffs,
      socketLb: 'all',
      logger: noopLogger,
      ...options,
    });
  }

  [Symbol.dispose](): void {
    execFileSync('umount', [this.bpffs]);
    rmdirSync(this.bpffs);
    rmdirSync(this.cgroup);
  }
}
