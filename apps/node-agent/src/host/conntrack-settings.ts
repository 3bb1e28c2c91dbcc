import type { Millis } from '@switchyard/core';
import { type KernelFiles, sysctlPath } from '@switchyard/host';
import type { ConntrackConfig } from '../config/run-config.ts';

/** One setting of the kernel and its wanted value. */
export interface WantedSetting {
  readonly path: string;
  readonly value: number;
  /** `atLeast`: a larger value stays. */
  readonly rule: 'exactly' | 'atLeast';
}

/** Upper bound of the flow limit for any number of cores, as in kube-proxy. */
export const largestConntrackMax = 1_048_576;

const hashsize = '/sys/module/nf_conntrack/parameters/hashsize';

/**
 * Returns the settings of kube-proxy in its order. `maxPerCore` 0 keeps the number of flows and ignores `min`. The hash
 * table gets a bucket for four flows. Neither is ever made smaller: kube-proxy lowers the number of flows up to 1.37, and
 * does not start where it may not write (kubernetes/kubernetes#142035).
 */
export function conntrackSettings(config: ConntrackConfig, cores: number): readonly WantedSetting[] {
  const max = conntrackMax(config, cores);
  const timeout = (name: string, value: Millis): readonly WantedSetting[] =>
    value > 0 ? [exactly(name, Math.floor(value / 1000))] : [];
  return [
    ...(max === 0 ? [] : [atLeast(sysctlPath('net.netfilter.nf_conntrack_max'), max)]),
    ...(max === 0 ? [] : [atLeast(hashsize, Math.floor(max / 4))]),
    ...timeout('nf_conntrack_tcp_timeout_established', config.tcpEstablishedTimeout),
    ...timeout('nf_conntrack_tcp_timeout_close_wait', config.tcpCloseWaitTimeout),
    ...(config.tcpBeLiberal ? [exactly('nf_conntrack_tcp_be_liberal', 1)] : []),
    ...timeout('nf_conntrack_udp_timeout', config.udpTimeout),
    ...timeout('nf_conntrack_udp_timeout_stream', config.udpStreamTimeout),
  ];
}

/** Whether the kernel treats TCP packets outside the window as valid. */
export function isTcpLiberal(files: Pick<KernelFiles, 'read'>): boolean {
  return files.read(sysctlPath('net.netfilter.nf_conntrack_tcp_be_liberal')) === '1';
}

function conntrackMax({ maxPerCore, min }: ConntrackConfig, cores: number): number {
  if (maxPerCore <= 0) return 0;
  return Math.max(min, Math.min(maxPerCore * cores, largestConntrackMax));
}

function atLeast(path: string, value: number): WantedSetting {
  return { path, value, rule: 'atLeast' };
}

function exactly(name: string, value: number): WantedSetting {
  return { path: sysctlPath(`net.netfilter.${name}`), value, rule: 'exactly' };
}
