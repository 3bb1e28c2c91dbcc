import { noopLogger } from '@switchyard/core';
import { LinuxKernel } from '../../src/kernel/programs/linux-kernel.ts';
import { largerOf, tinySizes } from './kernel-sizes.ts';

// Starts, grows, attaches, changes its programs and removes everything, over and over, until it is killed.

const [bpffs = '', cgroup = ''] = process.argv.slice(2);
const signal = new AbortController().signal;
process.stdout.write('ready\n');
for (let round = 0; round < 1000; round++) {
  const socketLb = round % 2 === 0 ? 'all' : 'host';
  const version = 1 + (round % 3 === 2 ? 1 : 0);
  const options = { ipFamily: 'IPv4', cgroup: () => cgroup, bpffs, socketLb, logger: noopLogger, version } as const;
  await using kernel = new LinuxKernel(options);
  await kernel.openMaps(tinySizes, signal);
  await kernel.attach(signal);
  await kernel.growMaps(largerOf(tinySizes), signal);
  await kernel.removeOtherVersions(signal);
  if (round % 4 === 3) await kernel.remove(signal);
}
