import { readlinkSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Cidr, ConfigError, type IpAddress, ipFamilies, ipFamilyOf, parseCidr, parseIp } from '@switchyard/core';
import type { LogLevel } from '@switchyard/host';
import { Command, CommanderError, Option } from 'commander';
import { positiveDuration } from './positive-duration.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import { healthProfile, healthProfiles } from '../health-profile/health-profiles.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import { maxRunDirectoryLength } from '../haproxy/haproxy-files.ts';

/** What the operator asked for, validated. */
export interface RunConfig {
  readonly kind: 'run';
  /** Absolute path. */
  readonly kubeconfig: string;
  readonly source: AddressSource;
  /** Where pool addresses are put. Undefined with `--address`. */
  readonly interfaceName: string | undefined;
  readonly netns: string | undefined;
  readonly profile: HealthProfile;
  /** Absolute path; undefined: no event log. */
  readonly eventLog: string | undefined;
  readonly isKeptOnExit: boolean;
  readonly haproxy: string;
  /** Absolute path. */
  readonly runDirectory: string;
  readonly logLevel: LogLevel;
}

/** What this process is to do. */
export type Config = RunConfig | { readonly kind: 'help'; readonly text: string };

interface RawOptions {
  readonly kubeconfig?: string;
  readonly address: readonly string[];
  readonly pool: readonly string[];
  readonly interface?: string;
  readonly netns?: string;
  readonly healthCheckProfile: string;
  readonly healthCheckInterval?: string;
  readonly healthCheckFall?: string;
  readonly healthCheckRise?: string;
  readonly healthCheckTimeout?: string;
  readonly connectTimeout?: string;
  readonly eventLog?: string;
  readonly keepOnExit?: boolean;
  readonly haproxy: string;
  readonly runDirectory?: string;
  readonly logLevel: LogLevel;
}

/** Reads the flags. Throws `ConfigError` with one line for whatever is wrong. */
export function parseConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const command = newCommand();
  try {
    command.parse([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return { kind: 'help', text: command.helpInformation() };
    throw new ConfigError('lb.flags', `${error.message.replace(/^error: /, '')}; see --help`, { cause: error });
  }
  const raw = command.opts<RawOptions>();
  const netns = checkNetns(raw.netns);
  const source = addressSource(raw);
  return {
    kind: 'run',
    kubeconfig: kubeconfigPath(raw, env),
    source,
    interfaceName: interfaceNameOf(raw, source),
    netns,
    profile: profileOf(raw),
    eventLog: raw.eventLog === undefined ? undefined : resolve(raw.eventLog),
    isKeptOnExit: raw.keepOnExit ?? false,
    haproxy: raw.haproxy,
    runDirectory: runDirectoryOf(raw.runDirectory, netns),
    logLevel: raw.logLevel,
  };
}

function newCommand(): Command {
  const collect = (value: string, before: readonly string[]): readonly string[] => [...before, ...value.split(',')];
  return new Command('switchyard-lb')
    .description('Runs the load balancers of Services of type LoadBalancer in a real HAProxy and writes their status.')
    .helpOption('-h, --help', 'show this text')
    .exitOverride()
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined })
    .option('--kubeconfig <file>', 'how to reach the API server (default: the KUBECONFIG variable)')
    .option('--address <ip>', "the load-balancer host's own address, one per family; Services share it", collect, [])
    .option('--pool <cidr>', 'give every Service addresses of its own from here; needs --interface', collect, [])
    .option('--interface <name>', "where pool addresses are added, in a namespace that is not the machine's own")
    .option('--netns <name>', 'run HAProxy in this namespace of /run/netns (default: our own)')
    .option('--health-check-profile <name>', Object.keys(healthProfiles).join(', '), 'cloud-provider-kind')
    .option('--health-check-interval <duration>', 'pause between two checks, such as 5s or 500ms')
    .option('--fall, --health-check-fall <count>', 'failed checks until a node is taken out')
    .option('--rise, --health-check-rise <count>', 'good checks until a node is used again')
    .option('--timeout, --health-check-timeout <duration>', "longest wait for a check's answer (default: the interval)")
    .option('--connect-timeout <duration>', 'longest wait for a connection to a node')
    .option('--event-log <file>', 'append a JSON line whenever HAProxy begins or stops using a node')
    .option('--keep-on-exit', 'leave HAProxy running; the next start takes it over')
    .option('--haproxy <program>', 'HAProxy 2.6 or newer', 'haproxy')
    .option('--run-directory <folder>', 'sockets and configuration (default: /run/switchyard-lb/<namespace>)')
    .addOption(
      new Option('--log-level <level>', 'how much to log')
        .choices(['error', 'warn', 'info', 'debug', 'trace'])
        .default('info'),
    )
    .allowExcessArguments(false);
}

function kubeconfigPath({ kubeconfig }: RawOptions, env: Readonly<Record<string, string | undefined>>): string {
  const path = kubeconfig ?? env['KUBECONFIG'] ?? '';
  if (path === '') throw new ConfigError('lb.kubeconfig', 'which API server? give --kubeconfig FILE or set KUBECONFIG');
  return resolve(path);
}

function addressSource({ address, pool }: RawOptions): AddressSource {
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

function interfaceNameOf({ interface: name }: RawOptions, source: AddressSource): string | undefined {
  if (source.kind === 'shared' && name !== undefined) {
    throw new ConfigError('lb.interface', '--interface is for --pool; the host has the addresses of --address already');
  }
  if (source.kind === 'pool' && name === undefined) {
    throw new ConfigError('lb.interface', '--pool needs --interface: where are its addresses to be added?');
  }
  return name;
}

function profileOf(raw: RawOptions): HealthProfile {
  const { healthCheckInterval: interval, healthCheckTimeout: timeout, connectTimeout } = raw;
  const changes: { -readonly [K in keyof HealthProfile]?: HealthProfile[K] } = {};
  if (interval !== undefined) changes.interval = positiveDuration(interval, '--health-check-interval');
  if (timeout !== undefined) changes.timeout = positiveDuration(timeout, '--health-check-timeout');
  if (connectTimeout !== undefined) changes.connectTimeout = positiveDuration(connectTimeout, '--connect-timeout');
  if (raw.healthCheckFall !== undefined) changes.fall = Number(raw.healthCheckFall);
  if (raw.healthCheckRise !== undefined) changes.rise = Number(raw.healthCheckRise);
  return healthProfile(raw.healthCheckProfile, changes);
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

function flagValue<T extends IpAddress | Cidr>(flag: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (cause) {
    throw new ConfigError('lb.flags', `${flag}: ${cause instanceof Error ? cause.message : text}`, { cause });
  }
}
