import { type Cidr, HostError, type IpAddress, tryParseCidr, tryParseIp } from '@switchyard/core';
import { arrayOf, type Fields, fieldsOf, parseJson, textOf } from './json-fields.ts';

/** The used fields of an engine's network. */
export interface EngineNetwork {
  readonly name: string;
  /** IPv4 before IPv6 where the engine says so; at least one. */
  readonly subnets: readonly Cidr[];
  readonly gateways: readonly IpAddress[];
  /** Running containers with an address on the network. Undefined: this engine does not list them (Podman before 5, nerdctl). */
  readonly containers: readonly NetworkContainer[] | undefined;
}

/** A container on a network. */
export interface NetworkContainer {
  /** In full. */
  readonly id: string;
  readonly name: string;
  readonly addresses: readonly IpAddress[];
}

/** Reads `network inspect NAME` of Docker, Podman and nerdctl. Throws `HostError` if it is none of them. */
export function parseNetwork(json: string): EngineNetwork {
  const network = fieldsOf(arrayOf(parseJson(json, 'network inspect'))[0]);
  const isPodman = network['subnets'] !== undefined;
  const ranges = (isPodman ? arrayOf(network['subnets']) : arrayOf(fieldsOf(network['IPAM'])['Config'])).map(fieldsOf);
  const name = textOf(network['Name']) ?? textOf(network['name']) ?? '';
  const subnets = ranges.flatMap((range) => tryParseCidr(textOf(range['Subnet'] ?? range['subnet']) ?? '') ?? []);
  const gateways = ranges.flatMap((range) => tryParseIp(textOf(range['Gateway'] ?? range['gateway']) ?? '') ?? []);
  if (name === '' || subnets.length === 0) {
    throw new HostError('docker.network', `network ${name} has no subnet; a network of the driver bridge is needed`);
  }
  const containers = network['Containers'] ?? network['containers'];
  return {
    name,
    subnets,
    gateways,
    containers: containers === undefined ? undefined : Object.entries(fieldsOf(containers)).map(containerOf),
  };
}

function containerOf([id, value]: readonly [string, unknown]): NetworkContainer {
  const container = fieldsOf(value);
  const docker = [container['IPv4Address'], container['IPv6Address']];
  const podman = Object.values(fieldsOf(container['interfaces']))
    .flatMap((one) => arrayOf(fieldsOf(one)['subnets']))
    .map((one) => fieldsOf(one)['ipnet']);
  const texts = [...docker, ...podman].flatMap((one) => textOf(one) ?? []);
  return {
    id,
    name: nameOf(container),
    addresses: texts.flatMap((text) => tryParseIp(text.split('/')[0] ?? '') ?? []),
  };
}

function nameOf(container: Fields): string {
  return textOf(container['Name']) ?? textOf(container['name']) ?? '';
}
