import { traitsOf } from '../backends.ts';
import { type EventRecorder, HostError, type IpFamily, type Logger, type Millis } from '@switchyard/core';
import { type KernelFiles, sysctlPath } from '@switchyard/host';
import type { RunConfig, ConntrackConfig } from '../config/run-config.ts';
import { nodeWarning } from '../events/agent-events.ts';

interface WantedSetting {
  readonly path: string;
  readonly value: number;
  /** `atLeast`: a larger value stays. */
  readonly rule: 'exactly' | 'atLeast';
}

/** Upper bound of the flow limit for any number of cores, as in kube-proxy. */
const largestConntrackMax = 1_048_576;

const hashsize = '/sys/module/nf_conntrack/parameters/hashsize';
const tcpLiberal = sysctlPath('net.netfilter.nf_conntrack_tcp_be_liberal');

const exactly = (path: string, value: number): WantedSetting => ({ path, value, rule: 'exactly' });

/**
 * Returns the settings of kube-proxy in its order. `maxPerCore` 0 keeps the number of flows and ignores `min`. The hash
 * table gets a bucket for four flows. Neither is ever made smaller: kube-proxy lowers the number of flows up to 1.37, and
 * does not start where it may not write (kubernetes/kubernetes#142035).
 */
export function conntrackSettings(config: ConntrackConfig, cores: number): readonly WantedSetting[] {
  const { maxPerCore, min } = config;
  const max = maxPerCore <= 0 ? 0 : Math.max(min, Math.min(maxPerCore * cores, largestConntrackMax));
  const atLeast = (path: string, value: number): WantedSetting => ({ path, value, rule: 'atLeast' });
  const timeout = (name: string, value: Millis): readonly WantedSetting[] =>
    value > 0 ? [exactly(sysctlPath(`net.netfilter.${name}`), Math.floor(value / 1000))] : [];
  return [
    ...(max === 0
      ? []
      : [atLeast(sysctlPath('net.netfilter.nf_conntrack_max'), max), atLeast(hashsize, Math.floor(max / 4))]),
    ...timeout('nf_conntrack_tcp_timeout_established', config.tcpEstablishedTimeout),
    ...timeout('nf_conntrack_tcp_timeout_close_wait', config.tcpCloseWaitTimeout),
    ...(config.tcpBeLiberal ? [exactly(tcpLiberal, 1)] : []),
    ...timeout('nf_conntrack_udp_timeout', config.udpTimeout),
    ...timeout('nf_conntrack_udp_timeout_stream', config.udpStreamTimeout),
  ];
}

/** Whether the kernel treats TCP packets outside the window as valid. */
export function isTcpLiberal(files: Pick<KernelFiles, 'read'>): boolean {
  return files.read(tcpLiberal) === '1';
}

interface SetUpHost {
  readonly files: KernelFiles;
  readonly cores: number;
  readonly ipFamilies: readonly IpFamily[];
  readonly logger: Logger;
  readonly events: EventRecorder;
}

type SetUpConfig = Pick<RunConfig, 'mode' | 'iptables' | 'conntrack' | 'oomScoreAdj' | 'nodeName'>;

/**
 * Applies the kernel settings that need more than CAP_NET_ADMIN and differ from the wanted values. A refused setting causes one
 * warning per kind and does not end the process: forwarding works without it.
 */
export function setUpHost(config: SetUpConfig, host: SetUpHost): void {
  const { conntrack, oomScoreAdj, nodeName } = config;
  const { logger } = host;
  allowLocalhostNodePorts(config, host);
  const oom = oomScoreAdj === undefined ? [] : [exactly('/proc/self/oom_score_adj', oomScoreAdj)];
  for (const error of make(oom, host)) {
    logger.warn('oom_score_adj stays as it is; lower values need CAP_SYS_RESOURCE', { error: error.message });
  }
  const refused = make(conntrackSettings(conntrack, host.cores), host);
  if (refused.length === 0) return;
  const advice = 'run once with --init-only and full rights, or set them to 0 to leave them to the machine';
  logger.warn('conntrack settings stay as they are', { refused: refused.map(({ message }) => message), advice });
  const ofSys = refused.find(({ message }) => message.includes(' /sys/'));
  if (ofSys === undefined) return;
  const note = `cannot modify conntrack limits, problems may arise later: ${ofSys.message}`;
  host.events.record(nodeWarning(nodeName, 'readOnlySysFS', note)); // kube-proxy's words, which people search for
}

/** Applies the settings of a changed configuration. `nodePortAddresses` may include loopback at any time. */
export function setUpAfterChange(before: SetUpConfig, now: SetUpConfig, host: SetUpHost): void {
  if (!before.iptables.localhostNodePorts) allowLocalhostNodePorts(now, host);
}

/** Sets route_localnet, without which packets to 127.0.0.0/8 cannot leave the loopback interface. Logs it at each start, in kube-proxy's words. */
function allowLocalhostNodePorts({ mode, iptables }: SetUpConfig, host: SetUpHost): void {
  if (
    traitsOf(mode).loopbackNodePorts !== 'kernel' ||
    !iptables.localhostNodePorts ||
    !host.ipFamilies.includes('IPv4')
  )
    return;
  const how =
    'to change this either disable iptables.localhostNodePorts (--iptables-localhost-nodeports) or set nodePortAddresses (--nodeport-addresses) to filter loopback addresses';
  host.logger.info(`Setting route_localnet=1 to allow node-ports on localhost; ${how}`);
  for (const error of make([exactly(sysctlPath('net.ipv4.conf.all.route_localnet'), 1)], host)) {
    host.logger.warn('NodePorts do not answer on 127.0.0.1', {
      error: error.message,
      advice: 'run once with --init-only and full rights',
    });
  }
}

function make(settings: readonly WantedSetting[], { files, logger }: SetUpHost): readonly HostError[] {
  const refused: HostError[] = [];
  const changed: string[] = [];
  for (const { path, value, rule } of settings) {
    try {
      const before = files.read(path);
      if (before === undefined)
        throw new HostError('host.setting', `cannot set ${path} to ${value}: this kernel has no such setting`);
      if (Number(before) === value || (rule === 'atLeast' && Number(before) > value)) continue;
      files.write(path, String(value));
      changed.push(`${path}: ${before} -> ${value}`);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      refused.push(error);
    }
  }
  if (changed.length > 0) logger.info('kernel settings changed', { changed });
  return refused;
}
