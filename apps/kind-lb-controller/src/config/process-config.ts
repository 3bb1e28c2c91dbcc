import { readlinkSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError, ipFamilies, ipFamilyOf, parseCidr, parseIp } from '@switchyard/core';
import { maxRunDirectoryLength } from '../haproxy/haproxy-files.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import { flagValue } from './flag-value.ts';
import type { ProcessConfig } from './run-config.ts';
import type { RawFlags } from './run-flags.ts';

/** Reads the flags of the process runtime. Throws `ConfigError`. */
export function processConfig(raw: RawFlags): ProcessConfig {
  if (raw.publishPorts !== undefined) throw new ConfigError('lb.flags', '--publish-ports is for --runtime docker');
  const netns = checkNetns(raw.netns);
  const source = addressSource(raw);
  if (source.kind === 'pool' && raw.interface === undefined) {
    throw new ConfigError('lb.interface', '--pool needs --interface: where are its addresses to be added?');
  }
  return {
    kind: 'process',
    source,
    interfaceName: raw.interface,
    netns,
    isKeptOnExit: raw.keepOnExit ?? false,
    haproxy: raw.haproxy,
    runDirectory: runDirectoryOf(raw.runDirectory, netns),
  };
}

function addressSource({ address = [], pool = [] }: RawFlags): AddressSource {
  if ((address.length === 0) === (pool.length === 0)) {
    throw new ConfigError(
      'lb.addresses',
      'give either --address or --pool: where do load-balancer addresses come from?',
    );
  }
  if (pool.length > 0) return { kind: 'pool', cidrs: pool.map((text) => flagValue('--pool', text, parseCidr)) };
  const addresses = address.map((text) => flagValue('--address', text, parseIp));
  for (const family of ipFamilies) {
    if (addresses.filter((ip) => ipFamilyOf(ip) === family).length > 1) {
      throw new ConfigError('lb.addresses', `--address: more than one ${family} address; use --pool for several`);
    }
  }
  return { kind: 'shared', addresses };
}

function checkNetns(netns: string | undefined): string | undefined {
  if (netns === undefined) return undefined;
  if (!/^[\w.-]+$/.test(netns)) throw new ConfigError('lb.netns', `--netns: not a namespace name: ${netns}`);
  if (statSync(`/run/netns/${netns}`, { throwIfNoEntry: false }) === undefined) {
    throw new ConfigError('lb.netns', `--netns: there is no namespace ${netns} in /run/netns; see 'ip netns list'`);
  }
  return netns;
}

/** One directory per network namespace: its inode number is what two controllers there have in common. */
function runDirectoryOf(given: string | undefined, netns: string | undefined): string {
  const directory = resolve(given ?? join('/run/switchyard-lb', namespaceId(netns)));
  if (directory.length > maxRunDirectoryLength) {
    throw new ConfigError(
      'lb.run-directory',
      `--run-directory: longer than ${maxRunDirectoryLength} characters: ${directory}`,
    );
  }
  return directory;
}

function namespaceId(netns: string | undefined): string {
  if (netns !== undefined) return `${statSync(`/run/netns/${netns}`).ino}`;
  return readlinkSync('/proc/self/ns/net').replace(/\D/g, '');
}
