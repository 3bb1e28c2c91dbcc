import { type KernelFiles, commandFailed, type CommandRunner, isProgramMissing } from '@switchyard/host';
import { get } from 'node:http';
import { HostError, seconds, type IpFamily, asError, millis } from '@switchyard/core';
import { allOfKubeProxy, iptablesPlaces } from '@switchyard/netfilter/iptables';
import { removePlace, type RuleAccess } from './iptables-place.ts';
import { tableFamily, type NftTables } from './tables.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/** Default ports of kube-proxy for health and metrics. */
const ports = [10_256, 10_249];

/** Returns the first default port of kube-proxy that is in use in this network namespace; undefined if none is. */
export function kubeProxyPort(files: KernelFiles): number | undefined {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => files.read(path) ?? '').join('\n');
  // Lines such as `0: 0100007F:2809 00000000:0000 0A ...`: local address and port, the remote's, and the state, which is 0A.
  const listening = [...tables.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm)];
  return ports.find((port) => listening.some(([, hex = '']) => Number.parseInt(hex, 16) === port));
}

/** Returns kube-proxy's metrics page at its default address in this network namespace; undefined if none answers in time. */
function askMetrics(): Promise<string | undefined> {
  return new Promise((resolve) => {
    const place = { host: '127.0.0.1', port: 10_249, path: '/metrics', agent: false };
    const request = get({ ...place, signal: AbortSignal.timeout(seconds(3)) }, (response) => {
      let page = '';
      response.setEncoding('utf8').on('data', (piece: string) => (page += piece));
      response.on('end', () => resolve(response.statusCode === 200 ? page : undefined));
      response.on('error', () => resolve(undefined));
    });
    request.on('error', () => resolve(undefined));
  });
}

/**
 * Throws `HostError` if a kube-proxy runs here that has not written its rules yet: then only the agent's rules forward Services.
 * Its health port does not show this, because kube-proxy counts as healthy until its first write. A proxy that exports none of
 * kube-proxy's metrics on the usual port is ignored.
 */
export async function refuseBesideUnreadyProxy(ask: typeof askMetrics = askMetrics): Promise<void> {
  const page = await ask();
  if (page === undefined || !/^kubeproxy_/m.test(page)) return;
  const times = [...page.matchAll(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds(?:\{[^}]*\})? (\S+)$/gm)];
  if (times.some(([, time]) => Number(time) > 0)) return;
  throw new HostError(
    'cleanup.unreadyProxy',
    'cannot clean up: the kube-proxy on this node has not written its rules yet (http://127.0.0.1:10249/metrics has no ' +
      'kubeproxy_sync_proxy_rules_last_timestamp_seconds above 0), so no rules would forward Services; nothing was removed; ' +
      'see its log and try again when it has written them, or stop it first to remove our rules anyway',
  );
}

/**
 * Removes the packet rules of a stopped kube-proxy: its chains in both variants of iptables, and its nft tables. Connections
 * continue, because conntrack holds their translation. Rejects only when aborted.
 */
export async function removeKubeProxyRules(
  access: RuleAccess,
  ipFamilies: readonly IpFamily[],
  signal: AbortSignal,
): Promise<Removal> {
  const removals: Removal[] = [];
  // Sequentially, because all removals need the kernel's single lock on rules.
  for (const ipFamily of ipFamilies) {
    removals.push(await removalOf(() => removeNftTable(access.tables, ipFamily), signal));
  }
  for (const place of iptablesPlaces(ipFamilies)) {
    removals.push(await removePlace(access, place, () => allOfKubeProxy, signal));
  }
  return joinRemovals(removals);
}

/** Removes the table of kube-proxy's nftables mode in one family. Rejects with `HostError`. */
export async function removeNftTable(tables: NftTables, ipFamily: IpFamily): Promise<Removal> {
  const family = tableFamily(ipFamily);
  const isRemoved = await tables.deleteTable({ family, table: kubeProxyTable });
  return isRemoved ? { ...nothingRemoved, removed: [`nftables table ${family} ${kubeProxyTable}`] } : nothingRemoved;
}

const kubeProxyTable = 'kube-proxy';

interface IpvsHost {
  readonly runner: CommandRunner;
  readonly files: KernelFiles;
}

/** kube-proxy's dummy interface, which holds every Service address. */
const dummy = 'kube-ipvs0';

/** Sets of the ipvs mode, for IPv4 and, with `6-`, for IPv6. Other programs have sets that begin with KUBE- as well. */
const ipsetName = new RegExp(
  '^KUBE-(?:6-)?(?:LOOP-BACK|CLUSTER-IP|EXTERNAL-IP(?:-LOCAL)?|LOAD-BALANCER(?:-FW|-LOCAL|-SOURCE-CIDR|-SOURCE-IP)?|' +
    'LOAD-BALANCER-SOURCE-(?:CIDR|IP)|NODE-PORT(?:-LOCAL)?-(?:TCP|UDP|SCTP-HASH)|HEALTH-CHECK-NODE-PORT|IPVS-IPS)$',
);

/**
 * Removes the state of the ipvs mode: virtual servers on the addresses of its dummy interface, the interface, and the ipsets.
 * Flows through ipvs end with their virtual server. Throws `HostError`.
 */
export async function removeKubeProxyIpvs(host: IpvsHost, signal: AbortSignal): Promise<Removal> {
  const removed: string[] = [];
  const skipped: string[] = [];
  const failures: Error[] = [];
  const removeDummy = async (): Promise<readonly string[]> => {
    await run(host, 'ip', ['link', 'delete', dummy], signal);
    return [`interface ${dummy}`];
  };
  const isThere = new RegExp(`^\\s*${dummy}:`, 'm').test(host.files.read('/proc/net/dev') ?? '');
  const steps = [
    ...(isThere ? [() => removeVirtualServers(host, signal), removeDummy] : []),
    () => removeIpsets(host, signal),
  ];
  for (const step of steps) {
    try {
      removed.push(...(await step()));
    } catch (error) {
      signal.throwIfAborted();
      if (isProgramMissing(error)) skipped.push((error as Error).message.replace(/^cannot run /, 'ipvs mode: '));
      else failures.push(asError(error));
    }
  }
  return { ...nothingRemoved, removed, skipped, failures };
}

async function removeVirtualServers(host: IpvsHost, signal: AbortSignal): Promise<readonly string[]> {
  const shown = await run(host, 'ip', ['-o', 'address', 'show', 'dev', dummy], signal);
  const addresses = new Set([...shown.matchAll(/ inet6? ([0-9a-f.:]+)\//g)].map(([, address]) => address));
  const saved = await run(host, 'ipvsadm', ['-S', '-n'], signal);
  const removed: string[] = [];
  for (const [, protocol = '', target = ''] of saved.matchAll(/^-A (-[tu]|--sctp-service) (\S+)/gm)) {
    const address = target.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
    if (!addresses.has(address)) continue;
    await run(host, 'ipvsadm', ['-D', protocol, target], signal);
    removed.push(`ipvs virtual server ${target}`);
  }
  return removed;
}

/** Removes the ipsets. The rules that use them must be removed before. */
async function removeIpsets(host: IpvsHost, signal: AbortSignal): Promise<readonly string[]> {
  const names = (await run(host, 'ipset', ['list', '-n'], signal)).split('\n').filter((name) => ipsetName.test(name));
  for (const name of names) await run(host, 'ipset', ['destroy', name], signal);
  return names.map((name) => `ipset ${name}`);
}

async function run({ runner }: IpvsHost, file: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const result = await runner.run(file, args, { timeout: millis(30_000), signal });
  if (result.exitCode === 0) return result.stdout;
  throw commandFailed(`cannot remove what the ipvs mode of kube-proxy left`, { file, args }, result);
}
