import { resolve } from 'node:path';
import { ConfigError } from '@switchyard/core';
import { CommanderError } from 'commander';
import { isClusterName } from '../docker/container-names.ts';
import { healthProfile } from '../health-profile/health-profiles.ts';
import type { HealthCheckChanges, PlanDefaults } from '../plan/settings.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import { dockerConfig } from './docker-config.ts';
import { positiveDuration } from './flag-value.ts';
import { processConfig } from './process-config.ts';
import type { ClustersConfig, LeaseConfig, RunConfig } from './run-config.ts';
import { newRunCommand, type RawFlags } from './run-flags.ts';

/** Task of this process. */
export type Config =
  | RunConfig
  /** A text to print: the usage or the version. */
  | { readonly kind: 'help'; readonly text: string }
  /** Subcommands, with the arguments after their names. */
  | { readonly kind: 'check'; readonly args: readonly string[] }
  | { readonly kind: 'profiles'; readonly args: readonly string[] };

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the command line. Throws `ConfigError` with one line for invalid flags. */
export function parseConfig(args: readonly string[], env: Environment = process.env): Config {
  const [first, ...rest] = args;
  if (first === 'check') return { kind: 'check', args: rest };
  if (first === 'profiles') return { kind: 'profiles', args: rest };
  return parseRun(first === 'run' ? rest : args, env);
}

function parseRun(args: readonly string[], env: Environment): Config {
  const command = newRunCommand();
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) });
  try {
    command.parse([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed' || error.code === 'commander.version')
      return { kind: 'help', text: help };
    const reason =
      error.code === 'commander.excessArguments'
        ? `there is no command '${command.args[0]}'; there is run, check and profiles`
        : oneLine(error);
    throw new ConfigError('lb.flags', `${reason}; see --help`, { cause: error });
  }
  const raw = command.opts<RawFlags>();
  const runtime = raw.runtime === 'process' ? processConfig(raw) : dockerConfig(raw, env);
  return {
    kind: 'run',
    runtime,
    clusters: clustersOf(raw, env),
    defaults: defaultsOf(raw, runtime.kind === 'docker' && runtime.publishOn !== undefined),
    lease: leaseOf(raw),
    eventLog: raw.eventLog === undefined ? undefined : resolve(raw.eventLog),
    logLevel: raw.logLevel,
  };
}

function oneLine({ message }: CommanderError): string {
  return message
    .replace(/^error: /, '')
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(/\.$/, '');
}

/** The process runtime has one cluster, which needs no name of its own. */
const processClusterName = 'lab';

/** The `KUBECONFIG` variable counts for the process runtime only: people have it set, and kind clusters are found without. */
function clustersOf({ runtime, kubeconfig, cluster: names = [] }: RawFlags, env: Environment): ClustersConfig {
  const file = kubeconfig ?? (runtime === 'process' ? (env['KUBECONFIG'] ?? '') : undefined);
  if (file === '') {
    throw new ConfigError('lb.kubeconfig', 'which API server? give --kubeconfig FILE or set KUBECONFIG');
  }
  const wrong = names.find((name) => !isClusterName(name));
  if (wrong !== undefined) throw new ConfigError('lb.cluster', `--cluster: not a name of a cluster: '${wrong}'`);
  if (file === undefined) return { kind: 'discovery', names };
  const [name, another] = names;
  if (another !== undefined || (name === undefined && runtime === 'docker')) {
    throw new ConfigError('lb.cluster', '--kubeconfig needs one --cluster: the name that kind has for it');
  }
  return { kind: 'kubeconfig', file: resolve(file), name: name ?? processClusterName };
}

function defaultsOf(raw: RawFlags, isPublished: boolean): PlanDefaults {
  const flags = changesOf(raw);
  healthProfile(raw.healthCheckProfile, flags); // wrong flags are found at the start
  return {
    isFastDrain: raw.fastDrain,
    isPublished,
    // Flags change their own profile, not one that a Service names.
    healthProfileOf: (name, changes: HealthCheckChanges) =>
      name === undefined
        ? healthProfile(raw.healthCheckProfile, { ...flags, ...changes })
        : healthProfile(name, changes),
  };
}

function changesOf(raw: RawFlags): Partial<HealthProfile> {
  const durations = [
    ['interval', '--health-check-interval', raw.healthCheckInterval],
    ['downInterval', '--health-check-down-interval', raw.healthCheckDownInterval],
    ['timeout', '--health-check-timeout', raw.healthCheckTimeout],
    ['connectTimeout', '--connect-timeout', raw.connectTimeout],
  ] as const;
  const changes: { -readonly [K in keyof HealthProfile]?: HealthProfile[K] } = {};
  for (const [field, flag, text] of durations) if (text !== undefined) changes[field] = positiveDuration(text, flag);
  if (raw.healthCheckFall !== undefined) changes.fall = Number(raw.healthCheckFall);
  if (raw.healthCheckRise !== undefined) changes.rise = Number(raw.healthCheckRise);
  return changes;
}

function leaseOf(raw: RawFlags): LeaseConfig | undefined {
  if (!raw.leaderElect) return undefined;
  const leaseDuration = positiveDuration(raw.leaderElectLeaseDuration, '--leader-elect-lease-duration');
  const renewDeadline = positiveDuration(raw.leaderElectRenewDeadline, '--leader-elect-renew-deadline');
  const retryPeriod = positiveDuration(raw.leaderElectRetryPeriod, '--leader-elect-retry-period');
  if (leaseDuration < 1000 || leaseDuration <= renewDeadline || renewDeadline <= 1.2 * retryPeriod) {
    throw new ConfigError(
      'lb.lease',
      '--leader-elect-lease-duration must be longer than -renew-deadline, and that longer than 1.2 times -retry-period',
    );
  }
  return {
    namespace: raw.leaderElectResourceNamespace,
    name: raw.leaderElectResourceName,
    timings: { leaseDuration, renewDeadline, retryPeriod },
  };
}
