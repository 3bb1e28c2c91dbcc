import { noopLogger } from '@switchyard/core';
import { LinuxKernel } from '../../src/kernel/programs/linux-kernel.ts';

// Removes what is pinned in a bpffs, and says what that was. Started without the rights of BPF, as a clean-up is.

const [bpffs = ''] = process.argv.slice(2);
const noCgroup = (): string => {
  throw new Error('a clean-up needs no cgroup');
};
const kernel = new LinuxKernel({ ipFamily: 'IPv4', cgroup: noCgroup, bpffs, socketLb: 'all', logger: noopLogger });
process.stdout.write(JSON.stringify(await kernel.remove(new AbortController().signal)));
