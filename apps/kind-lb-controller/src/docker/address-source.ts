import { type Cidr, ConfigError, type IpAddress } from '@switchyard/core';
import type { AddressSource } from '../plan/ip-pool.ts';
import { addressesOf, idOf, labels } from './container-names.ts';
import { listContainers } from './containers.ts';
import { checkPool, defaultPool, unusableAddresses } from './default-pool.ts';
import type { DockerCli } from './docker-cli.ts';
import { type EngineNetwork, parseNetwork } from './network-inspect.ts';

/** Inputs of the address source. */
export interface AddressSourceOptions {
  readonly cli: DockerCli;
  /** Name of the network. */
  readonly network: string;
  /** Empty: the top end of each of the network's subnets. */
  readonly pool: readonly Cidr[];
}

/** Looks a network up. Rejects with `CliError`; it says what to do when there is no such network. */
export async function inspectNetwork(cli: DockerCli, name: string, signal: AbortSignal): Promise<EngineNetwork> {
  return parseNetwork(await cli.run(`cannot look at network ${name}`, ['network', 'inspect', name], {}, signal));
}

/**
 * Reads the address source: the pool, its addresses in use by others, and those of load balancers of any cluster. Rejects with `CliError` (no such network, no engine), and with
 * `ConfigError` when the pool is not the network's, or the network has no room for one.
 */
export async function readAddressSource(options: AddressSourceOptions, signal: AbortSignal): Promise<AddressSource> {
  const { cli, network: name, pool } = options;
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
  const held = ours.flatMap(({ labels: all }) => {
    const id = idOf(all);
    return id === undefined ? [] : [{ id, addresses: addressesOf(all) }];
  });
  const reserved: readonly IpAddress[] = [
    ...network.gateways,
    ...network.subnets.flatMap(unusableAddresses),
    ...(await containerAddresses(cli, network, signal)),
  ];
  return { kind: 'pool', cidrs, reserved: [...new Set(reserved)], held };
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
