import { iptablesBackend } from '@switchyard/backend-iptables';
import { withFaults } from '@switchyard/backend-iptables/testing';
import { iptablesTraits } from '@switchyard/backend-iptables/traits';
import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import { openFaultyBackend } from '@switchyard/backend-nftables/testing';
import { noopLogger, seconds } from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { type KernelFaults, type KernelSubject, noKernelFaults, printedIn, runnerIn } from './kernel-harness.ts';

/** backend-nftables over netlink. */
export const nftablesKernel: KernelSubject = {
  name: 'nftables',
  dataplane: nftablesTraits,
  open: (namespace, ipFamily, faults) => {
    const host = { logger: noopLogger, netns: `/run/netns/${namespace}` };
    return Promise.resolve(openFaultyBackend(host, ipFamily, faults));
  },
  isEmpty: (namespace) => printedIn(namespace, 'nft', 'list', 'tables') === '',
  clear: (namespace) => void printedIn(namespace, 'nft', 'flush', 'ruleset'),
};

/** backend-iptables over the real programs. */
export function iptablesKernel(variant: IptablesVariant): KernelSubject {
  return {
    name: `iptables-${variant}`,
    dataplane: iptablesTraits,
    open: async (namespace, ipFamily, faults, signal) => {
      let active = noKernelFaults();
      const live: KernelFaults = {
        get rate() {
          return active.rate;
        },
        get random() {
          return active.random;
        },
        get refusing() {
          return active.refusing;
        },
        get refusedAddress() {
          return active.refusedAddress;
        },
      };
      const host = {
        runner: withFaults(runnerIn(namespace), live),
        logger: noopLogger,
        variant,
        masqueradeBit: 14,
        localhostNodePorts: true,
        tcpBeLiberal: false,
        syncPeriod: seconds(30),
        netns: `/run/netns/${namespace}`,
      };
      const backend = await iptablesBackend.open(host, ipFamily, signal);
      active = faults;
      return backend;
    },
    isEmpty: (namespace) =>
      ['iptables', 'ip6tables'].every((program) => isNothing(printedIn(namespace, `${program}-${variant}-save`))),
  };
}

/** KUBE-FIREWALL and what leads to it are the kubelet's as well, and stay. */
export function isNothing(save: string): boolean {
  return save.split('\n').every((line) => !/^(?::\S+ - |-A )/.test(line) || line.includes('KUBE-FIREWALL'));
}
