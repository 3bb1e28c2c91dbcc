import { setTimeout as sleep } from 'node:timers/promises';
import { HostError, type IpAddress, type IpFamily, UsageError } from '@switchyard/core';
import { clusterCidrs, hostAddresses, hostNumbers, perFamily, switchName } from '../network-plan.ts';
import type { Lab, LabHost, PerFamily } from '../lab.ts';
import { namespaceName } from '../names.ts';
import { runScript } from '../run-program.ts';
import type { DockerEngine } from './docker-engine.ts';

/** Options of a Docker network that becomes part of a lab's network. */
export interface JoinedNetworkOptions {
  readonly lab: Lab;
  /** Host of the engine. Its `eth0` becomes a port of Docker's bridge. */
  readonly host: LabHost;
  readonly engine: DockerEngine;
  /** Default `kind`, as kind calls its network. */
  readonly name?: string;
  /**
   * Lets Docker choose the IPv4 subnet, as kind does. Then Docker refuses `docker run --ip`, and gives containers the lowest addresses
   * from .2 on: at most eight at a time, since .10 is the lab's. Default false: containers get 172.18.1.x, and `--ip` works.
   */
  readonly isAutomatic?: boolean;
}

/** A Docker network on the lab's own link. */
export interface JoinedNetwork extends AsyncDisposable {
  readonly name: string;
  /** Docker's bridge in the host, such as `br-0123456789ab`. */
  readonly bridge: string;
  /** As Docker knows them: `172.18.0.0/16` and `fd00:172:18::/64`. */
  readonly subnets: PerFamily<string>;
  /** Default gateways of containers: the host, or with `isAutomatic` the lab's switch for IPv4. */
  readonly gateways: PerFamily<IpAddress>;
}

const subnets: Readonly<Record<IpFamily, string>> = { IPv4: '172.18.0.0/16', IPv6: 'fd00:172:18::/64' };
/** Address ranges of Docker, without the lab's addresses. */
const dynamicRanges: Readonly<Record<IpFamily, string>> = { IPv4: '172.18.1.0/24', IPv6: 'fd00:172:18:0:1::/80' };

/**
 * Makes a Docker network whose bridge has the lab's link as a port: containers, the lab's hosts and its client are neighbours then, as
 * containers and nodes are with kind. The host keeps its addresses, on the bridge. Disposing it disconnects the
 * containers, removes the network and restores the host; dispose it before the engine. It changes nothing outside the lab. While it
 * exists, a host that is not a node forwards IPv4, but not to pods, like a machine with kind.
 */
export async function joinDockerNetwork(options: JoinedNetworkOptions, signal: AbortSignal): Promise<JoinedNetwork> {
  const { lab, host, engine, name = 'kind', isAutomatic = false } = options;
  if (!lab.ipFamilies.includes('IPv4')) {
    throw new UsageError('docker.network', `a Docker network always has IPv4, and lab ${lab.name} has none`);
  }
  signal.throwIfAborted();
  const link = await readLink(host);
  await using undo = new AsyncDisposableStack();
  undo.defer(() => restoreLink(host, link));
  // Without its addresses and thus its routes Docker finds the network unused.
  const removals = link.addresses.map((address) => `address delete ${address} dev ${device}`);
  await change(host, removals);
  const id = await createNetwork(options);
  undo.defer(() => removeNetwork(engine, name));
  const bridge = `br-${id.slice(0, 12)}`;
  const switchAddresses = hostAddresses(hostNumbers.gateway, ['IPv4']);
  const surplus = isAutomatic ? `${switchAddresses.IPv4}/16` : undefined;
  await moveToBridge(host, link, bridge, surplus);
  if (!('podCidrs' in host)) {
    undo.defer(() => setForwarding(host, false, bridge));
    await setForwarding(host, true, bridge);
  }
  undo.defer(() => widenNetwork(options, 'delete'));
  await widenNetwork(options, 'replace');
  signal.throwIfAborted();
  const owned = undo.move();
  return {
    name,
    bridge,
    subnets: perFamily(lab.ipFamilies, (family) => subnets[family]),
    gateways: { ...host.addresses, ...(isAutomatic ? switchAddresses : {}) },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Creates the network and returns its id. Docker gives the bridge the host's addresses, which it keeps. */
async function createNetwork(options: JoinedNetworkOptions): Promise<string> {
  const { lab, host, engine, name = 'kind', isAutomatic = false } = options;
  const chosen = lab.ipFamilies.filter((family) => family === 'IPv6' || !isAutomatic);
  const pools = chosen.flatMap((family) => {
    const gateway = host.addresses[family] ?? '';
    return ['--subnet', subnets[family], '--ip-range', dynamicRanges[family], '--gateway', gateway];
  });
  const families = lab.ipFamilies.includes('IPv6') ? ['--ipv6'] : [];
  const id = await docker(engine, ['network', 'create', ...families, ...pools, name]);
  const found = await docker(engine, [
    'network',
    'inspect',
    '--format',
    '{{range .IPAM.Config}}{{.Subnet}} {{end}}',
    name,
  ]);
  if (found.split(' ').includes(subnets.IPv4)) return id;
  await docker(engine, ['network', 'rm', name]);
  throw new HostError(
    'docker.network',
    `Docker chose ${found} for network ${name}, where the lab needs ${subnets.IPv4}`,
  );
}

/**
 * Removes the network and disconnects its containers, by name: what is left of one that was removed while the engine restarted
 * has no id. One that just ends may be connected a moment longer. A stopped engine has no network left to remove.
 */
async function removeNetwork(engine: DockerEngine, name: string): Promise<void> {
  const format = '{{range .Containers}}{{.Name}} {{end}}';
  for (let left = removalAttempts; ; left--) {
    const { exitCode, stdout, stderr } = await engine.cli(['network', 'inspect', '--format', format, name]);
    if (exitCode !== 0 && /Cannot connect to the Docker daemon|No such network/i.test(stderr)) return;
    const containers = stdout.split(/\s+/).filter(Boolean);
    for (const container of containers) await engine.cli(['network', 'disconnect', '--force', name, container]);
    try {
      await docker(engine, ['network', 'rm', name]);
      return;
    } catch (error) {
      if (left <= 1) throw error;
      await sleep(removalPause);
    }
  }
}

const removalAttempts = 10;
const removalPause = 300;

/**
 * Adds or removes the lab hosts' route to the whole IPv4 subnet; without it they reach the first 256 addresses directly. Also
 * flushes their neighbour tables: entries of an earlier network's containers would stay valid for seconds.
 */
async function widenNetwork({ lab, host }: JoinedNetworkOptions, action: 'replace' | 'delete'): Promise<void> {
  const others = lab.hosts.filter((other) => other.namespace !== host.namespace);
  const change = (namespace: string, device: string): readonly string[] => [
    `ip -n ${namespace} route ${action} ${subnets.IPv4} dev ${device}`,
    `ip -n ${namespace} neighbour flush dev ${device}`,
  ];
  const lines = [
    ...change(namespaceName(lab.name, switchName), 'br0'),
    ...others.flatMap((other) => change(other.namespace, 'eth0')),
  ];
  await runScript(`make ${subnets.IPv4} the network of lab ${lab.name}`, lines.join('\n'));
}

async function docker(engine: DockerEngine, args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await engine.cli(args);
  if (exitCode === 0) return stdout.trim();
  throw new HostError('docker.network', `docker ${args.join(' ')} ended with ${exitCode}: ${stderr.trim()}`);
}

/** Configuration of a lab host's `eth0` in the syntax of `ip`. */
interface HostLink {
  readonly hardwareAddress: string;
  /** With prefix length, such as `172.18.0.50/24`; without link-local ones, which the kernel adds. */
  readonly addresses: readonly string[];
  /** Arguments of `ip route add` without the device; without the routes that addresses imply. */
  readonly routes: readonly string[];
}

const device = 'eth0';

interface ShownLink {
  readonly address: string;
  readonly addr_info: readonly { readonly local: string; readonly prefixlen: number; readonly scope: string }[];
}

interface ShownRoute {
  readonly type?: string;
  readonly dst: string;
  readonly gateway?: string;
  readonly protocol?: string;
}

/** Reads the configuration of a lab host's `eth0`. */
async function readLink(host: LabHost): Promise<HostLink> {
  const [link] = await show<ShownLink>(host, ['address', 'show', 'dev', device]);
  if (link === undefined) throw new HostError('docker.network', `host ${host.name} has no ${device}`);
  const routes = [
    ...(await show<ShownRoute>(host, ['-4', 'route', 'show', 'dev', device])),
    ...(await show<ShownRoute>(host, ['-6', 'route', 'show', 'dev', device])),
  ];
  return {
    hardwareAddress: link.address,
    addresses: link.addr_info
      .filter(({ scope }) => scope === 'global')
      .map(({ local, prefixlen }) => `${local}/${prefixlen}`),
    routes: routes
      .filter(({ protocol }) => protocol !== 'kernel')
      .map(({ dst, gateway }) => (gateway === undefined ? dst : `${dst} via ${gateway}`)),
  };
}

/**
 * Switches forwarding of IPv4 between a host's links, without which Docker warns at every start of a container. Packets from
 * the bridge to pods are then answered "unreachable", because a machine with kind has no route to pods.
 */
async function setForwarding(host: LabHost, isOn: boolean, bridge: string): Promise<void> {
  const file = '/proc/sys/net/ipv4/ip_forward';
  const { exitCode, stderr } = await host.run('sh', ['-c', `echo ${isOn ? 1 : 0} >${file}`]);
  if (exitCode !== 0) throw new HostError('docker.network', `cannot write ${file} of ${host.name}: ${stderr.trim()}`);
  const action = isOn ? 'add' : 'delete';
  await change(host, [`rule ${action} pref 100 iif ${bridge} to ${clusterCidrs.IPv4} unreachable`]);
}

/**
 * Makes `eth0` a port of a bridge that takes over its addresses and routes; its hardware address too, so that the
 * neighbours' ARP entries stay valid. `surplus` is an address that Docker gave the bridge and that another host has.
 */
async function moveToBridge(host: LabHost, link: HostLink, bridge: string, surplus: string | undefined): Promise<void> {
  const widened = link.addresses.map((address) => address.replace(/^([\d.]+)\/\d+$/, '$1/16'));
  await change(host, [
    `link set dev ${device} master ${bridge}`,
    `link set dev ${bridge} address ${link.hardwareAddress} up`,
    ...(surplus === undefined ? [] : [`address delete ${surplus} dev ${bridge}`]),
    ...configuration(widened, link.routes, bridge),
  ]);
}

/** Undoes `moveToBridge`. The bridge may be missing. */
async function restoreLink(host: LabHost, { addresses, routes }: HostLink): Promise<void> {
  await change(host, [`link set dev ${device} nomaster up`, ...configuration(addresses, routes, device)]);
}

function configuration(addresses: readonly string[], routes: readonly string[], to: string): readonly string[] {
  return [
    ...addresses.map((address) => `address replace ${address} dev ${to}${address.includes(':') ? ' nodad' : ''}`),
    ...routes.map((route) => `route replace ${route} dev ${to}`),
  ];
}

async function show<T>(host: LabHost, args: readonly string[]): Promise<readonly T[]> {
  const { exitCode, stdout, stderr } = await host.run('ip', ['-json', ...args]);
  if (exitCode === 0) return JSON.parse(stdout === '' ? '[]' : stdout) as readonly T[];
  throw new HostError(
    'docker.network',
    `cannot read the link of ${host.name} with ip ${args.join(' ')}: ${stderr.trim()}`,
  );
}

async function change(host: LabHost, lines: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await host.run('ip', ['-batch', '-'], { stdin: `${lines.join('\n')}\n` });
  if (exitCode === 0) return;
  throw new HostError('docker.network', `cannot change the link of ${host.name}: ${stderr.trim()}`);
}
