import { basename } from 'node:path';
import { ConfigError, parseCidr, parseIp } from '@switchyard/core';
import { flagValue } from './flag-value.ts';
import type { DockerConfig } from './run-config.ts';
import type { RawFlags } from './run-flags.ts';

const engines: readonly string[] = ['docker', 'podman', 'nerdctl'];
/** Published where only this machine can reach it, unless another address is named. */
const defaultPublishAddress = '127.0.0.1';

/** Reads the flags of the docker runtime. Throws `ConfigError`. */
export function dockerConfig(raw: RawFlags, env: Readonly<Record<string, string | undefined>>): DockerConfig {
  const forProcess = { '--address': raw.address?.[0], '--interface': raw.interface, '--netns': raw.netns };
  for (const [name, value] of Object.entries(forProcess)) {
    if (value !== undefined) throw new ConfigError('lb.flags', `${name} needs --runtime process`);
  }
  if (!engines.includes(basename(raw.containerEngine))) {
    throw new ConfigError(
      'lb.engine',
      `--container-engine: there is ${engines.join(', ')}, not '${raw.containerEngine}'`,
    );
  }
  return {
    kind: 'docker',
    engine: raw.containerEngine,
    network: raw.network ?? (env['KIND_EXPERIMENTAL_DOCKER_NETWORK'] || 'kind'),
    image: raw.image,
    pool: (raw.pool ?? []).map((text) => flagValue('--pool', text, parseCidr)),
    publishOn: publishAddress(raw.publishPorts),
  };
}

/** A flag without a value is `true` here; scripts for cloud-provider-kind may say so in words. */
function publishAddress(given: string | boolean | undefined): string | undefined {
  if (given === undefined || given === 'false') return undefined;
  if (given === true || given === 'true') return defaultPublishAddress;
  return flagValue('--publish-ports', String(given), parseIp);
}
