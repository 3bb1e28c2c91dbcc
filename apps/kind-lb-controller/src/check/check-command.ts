import type { Clock } from '@switchyard/core';
import { kubeconfigConnection, newApiClient } from '@switchyard/core/kubernetes';
import { parseCheckFlags } from './check-flags.ts';
import { checkService } from './check-service.ts';
import { readCluster } from './read-cluster.ts';
import { reportText } from './report-text.ts';

/** Output, environment and clock of the process. */
export interface CheckIo {
  /** Writes to stdout. */
  readonly write: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

/** Exit code: 0 when nothing is lost even in the worst case (as without replicas), 2 when a loss or nothing can be predicted. */
export type CheckExitCode = 0 | 2;

/**
 * `switchyard-lb check SERVICE ...`: says, before any rollout, what one will cost behind health-check profiles. `args` are those
 * after `check`. Only reads from the cluster. Rejects with `ConfigError` for wrong flags and for a Service that is not there,
 * with `ApiFailure` when the API server cannot be asked: both are exit code 1.
 */
export async function runCheck(args: readonly string[], io: CheckIo, signal: AbortSignal): Promise<CheckExitCode> {
  const config = parseCheckFlags(args, io.env);
  if (config.kind === 'help') {
    io.write(config.text);
    return 0;
  }
  const connection = await kubeconfigConnection(config.kubeconfig, io.clock);
  await using client = newApiClient(connection, { clock: io.clock, userAgent: 'switchyard-lb' });
  const report = checkService(await readCluster(client, config, signal), config);
  io.write(config.output === 'json' ? `${JSON.stringify(report, null, 2)}\n` : reportText(report));
  return report.isLossless ? 0 : 2;
}
