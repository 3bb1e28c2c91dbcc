import { networkInterfaces } from 'node:os';
import { type IpAddress, tryParseIp } from '@switchyard/core';

/**
 * The addresses that the container engine gave to an interface. Not those of load balancers, which have a prefix of one address, nor
 * link-local ones.
 */
export function ownAddresses(interfaceName: string): readonly IpAddress[] {
  return (networkInterfaces()[interfaceName] ?? [])
    .filter(({ cidr }) => cidr !== null && !/\/(?:32|128)$/.test(cidr))
    .flatMap(({ address }) => tryParseIp(address) ?? [])
    .filter((address) => !address.startsWith('fe80:'));
}
