import { createHash } from 'node:crypto';
import type { IpAddress, Port } from '@switchyard/core';
import type { LoadBalancerId, LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import { containerName, labels } from './container-names.ts';

/** A container to be made: what cannot be changed any more when it is there. */
export interface ContainerPlan {
  readonly id: LoadBalancerId;
  readonly network: string;
  /** Whether the network has IPv6: without it, its kernel settings may be missing, and setting them fails. */
  readonly hasIpv6: boolean;
  readonly interfaceSettings: InterfaceSettings;
  /** As the operator names it. */
  readonly image: string;
  /** Current image id of the name. */
  readonly imageId: string;
  readonly addresses: readonly IpAddress[];
  /** Address of this machine on which ports are published; undefined: they are not. */
  readonly publishOn: string | undefined;
  /** Ports to be published, ascending, TCP before UDP; empty unless `publishOn` is given. */
  readonly ports: readonly PublishablePort[];
  readonly isDiscovered: boolean;
}

/**
 * How an engine takes kernel settings of one interface. `sysctl`: like all others. `driverOption`: with the network, which is the only way
 * from Docker's API 1.48 (Docker 28) on, and there from 1.46 on. `none`: not at all.
 */
export type InterfaceSettings = 'sysctl' | 'driverOption' | 'none';

/** A Service port that an engine can publish. */
export interface PublishablePort {
  readonly port: Port;
  readonly protocol: 'tcp' | 'udp';
}

/** Time limit for a removed container to finish its connections, in seconds. */
export const drainSeconds = 10;

/** Raise it when containers made by an earlier version must be made anew although nothing below differs. */
const format = 1;

/**
 * The ports of a spec that an engine can publish: TCP and UDP (SCTP needs the engine's help of a kernel module on the machine). None of the
 * transparent path: published ports lead to the container's own address, for which no node answers. The problem `notPublished` reports it.
 */
export function publishablePorts(spec: LoadBalancerSpec): readonly PublishablePort[] {
  if (spec.path === 'transparent') return [];
  const protocols = { TCP: 'tcp', UDP: 'udp', SCTP: undefined } as const;
  return spec.ports.flatMap(({ port, protocol: name }) => {
    const protocol = protocols[name];
    return protocol === undefined ? [] : [{ port, protocol }];
  });
}

/**
 * The value of the label by which a container that must be made anew is recognised: it stands for the image's id, the network, published ports,
 * addresses, rights and kernel settings.
 */
export function containerVersion(plan: ContainerPlan): string {
  const { imageId, network, addresses, publishOn, ports } = plan;
  const all = [format, imageId, network, addresses, publishOn, ports, rights, kernelSettings(plan)];
  return createHash('sha256').update(JSON.stringify(all)).digest('hex').slice(0, 16);
}

/** Arguments of `run`, which makes the container and starts it: see `createArguments`. */
export function runArguments(plan: ContainerPlan, elsewhere: ReadonlySet<Port>): readonly string[] {
  return ['run', '--detach', ...containerArguments(plan, elsewhere)];
}

/**
 * Arguments of `create`, to which more can be added: HAProxy's own. A port is published under the same number, unless it is in `elsewhere`: then the engine chooses.
 */
export function createArguments(plan: ContainerPlan, elsewhere: ReadonlySet<Port>): readonly string[] {
  return ['create', ...containerArguments(plan, elsewhere)];
}

function containerArguments(plan: ContainerPlan, elsewhere: ReadonlySet<Port>): readonly string[] {
  const { id, image, addresses, publishOn, ports, isDiscovered } = plan;
  const tags = {
    [labels.cluster]: id.cluster,
    [labels.service]: id.service,
    [labels.addresses]: addresses.join(' '),
    [labels.version]: containerVersion(plan),
    ...(isDiscovered ? { [labels.discovered]: 'true' } : {}),
  };
  const published = publishOn === undefined ? [] : ports.map((one) => publishArgument(publishOn, one, elsewhere));
  return [
    '--pull=never',
    `--name=${containerName(id)}`,
    `--network=${networkArgument(plan)}`,
    '--restart=unless-stopped',
    '--stop-signal=SIGUSR1', // HAProxy finishes its connections, then ends
    `--stop-timeout=${drainSeconds}`,
    ...rights,
    ...kernelSettings(plan).map((setting) => `--sysctl=${setting}`),
    ...(plan.interfaceSettings === 'sysctl' ? [`--sysctl=${interfaceSetting('eth0')}`] : []),
    ...Object.entries(tags).map(([key, value]) => `--label=${key}=${value}`),
    ...published,
    image,
  ];
}

/**
 * HAProxy is not root and so has none of them. A program started by `exec --user 0` gets exactly these: enough for addresses, routes and nftables of
 * the container's own network namespace. `exec --privileged` would request all rights, which nested engines refuse.
 */
const rights = ['--cap-drop=ALL', '--cap-add=NET_ADMIN'];

/** /proc/sys is read-only in the container, so they are set when it is made. */
function kernelSettings({ hasIpv6 }: ContainerPlan): readonly string[] {
  return [
    'net.ipv4.ip_unprivileged_port_start=0',
    'net.ipv4.ip_forward=1',
    // The kernel announces an address to neighbours when the worker has added it.
    'net.ipv4.conf.all.arp_notify=1',
    'net.ipv4.conf.all.send_redirects=0', // see `interfaceSetting`
    ...(hasIpv6 ? ['net.ipv6.conf.all.forwarding=1', 'net.ipv6.conf.all.ndisc_notify=1'] : []),
  ];
}

/** Packets leave by the interface on which they arrived, so ICMP redirects must be off: for `all` and for this interface. */
function interfaceSetting(name: string): string {
  return `net.ipv4.conf.${name}.send_redirects=0`;
}

/** The long form is a line of CSV, of which the command line changes capitals to small letters. */
function networkArgument({ network, interfaceSettings }: ContainerPlan): string {
  if (interfaceSettings !== 'driverOption' || !/^[a-z0-9_.-]+$/.test(network)) return network;
  return `name=${network},driver-opt=com.docker.network.endpoint.sysctls=${interfaceSetting('IFNAME')}`;
}

function publishArgument(address: string, { port, protocol }: PublishablePort, elsewhere: ReadonlySet<Port>): string {
  const host = address.includes(':') ? `[${address}]` : address;
  return `--publish=${host}:${elsewhere.has(port) ? '' : port}:${port}/${protocol}`;
}
