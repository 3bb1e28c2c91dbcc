import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ConfigError } from '@switchyard/core';

/** Absolute path of a program of this checkout; the experiment runs the apps as an operator would. */
export function programPath(name: 'switchyard-agent' | 'switchyard-lb'): string {
  const app = name === 'switchyard-agent' ? 'node-agent' : 'kind-lb-controller';
  const path = fileURLToPath(new URL(`../../../../apps/${app}/bin/${name}`, import.meta.url));
  const bundle = fileURLToPath(new URL(`../../../../apps/${app}/dist-bundle/main.mjs`, import.meta.url));
  if (!existsSync(bundle))
    throw new ConfigError('rollout.notBuilt', `${name} is not built: ${bundle} is missing; run ./dev build`);
  return path;
}
