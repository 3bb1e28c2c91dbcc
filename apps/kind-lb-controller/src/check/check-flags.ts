import { join, resolve } from 'node:path';
import { ConfigError, type Millis, parseGoDuration } from '@switchyard/core';
import { type KnownProxy } from '@switchyard/loss';
import { Command, CommanderError, Option } from 'commander';
import { defaultHealthProfile, healthProfile, healthProfiles } from '../health-profile/health-profiles.ts';
import type { HealthProfile } from '../spec/health-profile.ts';

/** The Service to check, and the form of the report. */
export interface CheckConfig {
  readonly kind: 'check';
  /** Absolute path. */
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly service: string;
  /** Undefined: all Deployments whose pods the Service selects. */
  readonly deployment: string | undefined;
  /** Undefined: the profile of the Service's annotation, or the default one. */
  readonly profiles: readonly HealthProfile[] | undefined;
  /** Time that the app accepts connections after SIGTERM; undefined when not given. */
  readonly drain: Millis | undefined;
  readonly proxy: KnownProxy;
  readonly isFastDrain: boolean;
  readonly output: 'table' | 'json';
}

interface RawOptions {
  readonly kubeconfig?: string;
  readonly namespace: string;
  readonly deployment?: string;
  readonly healthCheckProfile?: string;
  readonly drainTime?: string;
  readonly proxy: KnownProxy;
  readonly fastDrain?: boolean;
  readonly output: 'table' | 'json';
}

/** Reads the flags after `check`. Throws `ConfigError` with one line for invalid flags. */
export function parseCheckFlags(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CheckConfig | { readonly kind: 'help'; readonly text: string } {
  const command = newCommand();
  try {
    command.parse([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return { kind: 'help', text: command.helpInformation() };
    const reason = error.message.replace(/^error: /, '').replace(/\.$/, '');
    throw new ConfigError('check.flags', `check: ${reason}; see check --help`, { cause: error });
  }
  const raw = command.opts<RawOptions>();
  const [service = ''] = command.args;
  return {
    kind: 'check',
    kubeconfig: kubeconfigPath(raw.kubeconfig, env),
    namespace: raw.namespace,
    service,
    deployment: raw.deployment,
    profiles: profilesOf(raw.healthCheckProfile),
    drain: drainOf(raw.drainTime),
    proxy: raw.proxy,
    isFastDrain: raw.fastDrain ?? false,
    output: raw.output,
  };
}

function newCommand(): Command {
  const proxies: readonly KnownProxy[] = ['kube-proxy', 'kube-proxy-1.25', 'switchyard', 'switchyard-iptables'];
  return new Command('switchyard-lb check')
    .description('Says, before any rollout, what one will lose behind a health-check profile. Only reads.')
    .argument('<service>', 'a Service of type LoadBalancer')
    .helpOption('-h, --help', 'show this text')
    .exitOverride()
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined })
    .option('-n, --namespace <name>', 'where Service and Deployment are', 'default')
    .option('--deployment <name>', 'this one only (default: all whose pods the Service selects)')
    .option(
      '--health-check-profile <name>',
      `all, or one of ${Object.keys(healthProfiles).join(', ')} (default: the Service's, or ${defaultHealthProfile})`,
    )
    .option('--drain-time <duration>', 'how long the app accepts connections after SIGTERM (default: taken as 0s)')
    .addOption(new Option('--proxy <name>', "the nodes' proxy").choices(proxies).default('kube-proxy'))
    .option('--fast-drain', 'the load balancer follows EndpointSlices and drains nodes before a check fails')
    .addOption(new Option('-o, --output <form>', 'for people or programs').choices(['table', 'json']).default('table'))
    .option('--kubeconfig <file>', 'how to reach the API server (default: KUBECONFIG, or ~/.kube/config)')
    .allowExcessArguments(false);
}

function kubeconfigPath(flag: string | undefined, env: Readonly<Record<string, string | undefined>>): string {
  const home = env['HOME'];
  const [named = ''] = (env['KUBECONFIG'] ?? '').split(':');
  const usual = home === undefined ? '' : join(home, '.kube/config');
  const path = flag ?? (named === '' ? usual : named); // an empty variable is none, as for kubectl
  if (path === '') throw new ConfigError('check.kubeconfig', 'check: which API server? give --kubeconfig FILE');
  return resolve(path);
}

function profilesOf(name: string | undefined): readonly HealthProfile[] | undefined {
  if (name === undefined) return undefined;
  return name === 'all' ? Object.values(healthProfiles) : [healthProfile(name)];
}

function drainOf(text: string | undefined): Millis | undefined {
  if (text === undefined) return undefined;
  try {
    return parseGoDuration(text);
  } catch (cause) {
    throw new ConfigError('check.drain-time', `--drain-time: not a duration such as 10s or 0s: '${text}'`, { cause });
  }
}
