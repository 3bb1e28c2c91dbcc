import type { Cidr, IpAddress } from '@switchyard/core';
import { ConfigError } from '@switchyard/core';
import type { AddressSource } from '../plan/ip-pool.ts';
import { addressesOf, idOf, labels } from './container-names.ts';
import { listContainers } from './containers.ts';
import { checkPool, defaultPool, unusableAddresses } from './default-pool.ts';
import type { DockerCli } from './docker-cli.ts';
import { type EngineNetwork, parseNetwork } from './network-inspect.ts';

/** What the address source depends on. */
export interface AddressSourceOptions {
  readonly cli: DockerCli;
  /** Name of the network. */
  readonly network: string;
  /** Empty: the top end of each of the network's subnets. */
  readonly pool: readonly Cidr[];
  /** Whether this controller serves the cluster: addresses of load balancers of other ones are theirs. */
  isServed(cluster: string): boolean;
}

/** Looks a network up. Rejects with `CliError`; it says what to do when there is no such network. */
export async function inspectNetwork(cli: DockerCli, name: string, signal: AbortSignal): Promise<EngineNetwork> {
  return parseNetwork(await cli.run(`cannot look at network ${name}`, ['network', 'inspect', name], {}, signal));
}

/**
 * Where addresses come from now: pool, and what others have in it. Rejects with `CliError` (no such network, no engine), and with
 * `ConfigError` when the pool is not the network's, or the network has no room for one.
 */
export async function readAddressSource(options: AddressSourceOptions, signal: AbortSignal): Promise<AddressSource> {
  const { cli, network: name, pool, isServed } = options;
  const network = await inspectNetwork(cli, name, signal);
  checkPool(pool, name, network.subnets);
  const cidrs = pool.length > 0 ? pool : network.subnets.flatMap((subnet) => defaultPool(subnet) ?? []);
  if (cidrs.length === 0) {
    const subnets = network.subnets.join(' and ');
    throw new ConfigError(
      'lb.pool',
      `network ${name} (${subnets}) is too small for load balancers; name addresses with --pool`,
    );
  }
  const ours = await listContainers(cli, [`label=${labels.cluster}`], signal);
  const ofOthers = ours.filter(({ labels: all }) => isServed(idOf(all)?.cluster ?? '') === false);
  const reserved: readonly IpAddress[] = [
    ...network.gateways,
    ...network.subnets.flatMap(unusableAddresses),
    ...(await containerAddresses(cli, network, signal)),
    ...ofOthers.flatMap(({ labels: all }) => addressesOf(all)),
  ];
  return { kind: 'pool', cidrs, reserved: [...new Set(reserved)] };
}

/** Those the engine gave to containers on the network. */
async function containerAddresses(
  cli: DockerCli,
  network: EngineNetwork,
  signal: AbortSignal,
): Promise<readonly IpAddress[]> {
  const containers = network.containers ?? (await listContainers(cli, [`network=${network.name}`], signal));
  return containers.flatMap(({ addresses }) => addresses);
}
