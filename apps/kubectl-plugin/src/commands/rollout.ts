import { ConfigError } from '@switchyard/core';
import { readRollout } from '../rollout/read-rollout.ts';
import { reportText } from '../rollout/report-text.ts';
import { rolloutReport } from '../rollout/rollout-report.ts';
import { watchRollout } from './rollout-watch.ts';
import type { CommandContext, ExitStatus } from './context.ts';

/**
 * `rollout check deployment/NAME`: predicts what the next rollout loses and prints the changes with which it loses nothing. Only reads:
 * see `readRollout`. Exit status 2: a loss is predicted. `rollout watch`: see `watchRollout`.
 */
export async function rolloutCommand(context: CommandContext, signal: AbortSignal): Promise<ExitStatus> {
  const { config, kubectl, print, warn } = context;
  const [action = '', object = ''] = config.operands;
  const [, name] = /^(?:deploy|deployments?(?:\.apps)?)\/([^/]+)$/.exec(object) ?? [];
  if ((action !== 'check' && action !== 'watch') || name === undefined) {
    throw new ConfigError(
      'rollout.arguments',
      'usage: kubectl switchyard rollout check|watch deployment/NAME (kubectl switchyard --help)',
    );
  }
  const objects = await readRollout(
    {
      deployment: name,
      namespace: config.namespace,
      kubectl,
      measuresDelay: config.rollout.proxyDelay === undefined && config.rollout.proxy === undefined,
      warn,
    },
    signal,
  );
  if (action === 'watch') return watchRollout(context, objects, signal);
  const report = rolloutReport(objects, config.rollout);
  if (report === undefined) {
    throw new ConfigError(
      'rollout.headless',
      `the Services of deployment/${name} are headless: clients connect to its pods, and no proxy leads to them`,
    );
  }
  print(config.isJson ? `${JSON.stringify(report, undefined, 2)}\n` : reportText(report));
  return report.isLossless ? 0 : 2;
}
