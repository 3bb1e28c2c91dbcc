import type { Logger } from '@switchyard/core';
import { version } from '../version.ts';
import { toDocument } from './documents.ts';
import { kubernetesRelease } from './kubernetes-version.ts';
import type { Config } from './run-config.ts';
import { toYaml } from './to-yaml.ts';
import { writeWhole } from './write-file.ts';

/** `--write-config-to`: kube-proxy's part of the configuration, complete, as YAML. Rejects with `HostError`. */
export async function writeConfig(config: Extract<Config, { readonly kind: 'write' }>, logger: Logger): Promise<void> {
  await writeWhole(config.file, toYaml(toDocument(config.settings)));
  logger.info('wrote configuration', { file: config.file });
}

/** `--version`: one line, or with `raw` all details as JSON. */
export function versionText(form: 'line' | 'raw'): string {
  if (form === 'line') return `switchyard-agent ${version}\n`;
  const { version: node, platform, arch } = process;
  return `${JSON.stringify({ version, kubeProxy: kubernetesRelease, node, platform, arch })}\n`;
}
