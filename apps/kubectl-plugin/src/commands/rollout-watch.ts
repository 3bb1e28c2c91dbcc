import { writeFile } from 'node:fs/promises';
import { ConfigError, HostError, messageOf } from '@switchyard/core';
import type { FoundAgents } from '../access/agents.ts';
import type { RolloutObjects } from '../rollout/read-rollout.ts';
import { rolloutReport, type RolloutReport } from '../rollout/rollout-report.ts';
import { recordRollout } from '../rollout-watch/record-rollout.ts';
import { watchHtml } from '../rollout-watch/watch-html.ts';
import { watchReport } from '../rollout-watch/watch-report.ts';
import { watchText } from '../rollout-watch/watch-text.ts';
import type { CommandContext, ExitStatus } from './context.ts';

/**
 * `rollout watch deployment/NAME`: records a rollout on one clock and compares its loss with the prediction. Exit status 2: something was
 * lost, or the rollout did not end.
 */
export async function watchRollout(
  context: CommandContext,
  objects: RolloutObjects,
  signal: AbortSignal,
): Promise<ExitStatus> {
  const { config, kubectl, clock, print, warn } = context;
  const { restart, url, html } = config.watch;
  const prediction = predict(objects, context);
  const load = url === undefined ? undefined : { url, rate: config.rollout.rate };
  using found = await agentsOrNone(context);
  const { agents } = found;
  const recording = await recordRollout(
    { objects, kubectl, agents, restart, load, limit: config.timeout, clock, warn },
    signal,
  );
  const { namespace, deployment, services } = objects;
  const name = deployment.metadata.name ?? '';
  const report = watchReport(recording, { namespace, deployment: name, services, prediction, load });
  print(config.isJson ? `${JSON.stringify(report, undefined, 2)}\n` : watchText(report));
  if (html !== undefined) await writePage(html, watchHtml(report, recording));
  return report.isLossless ? 0 : 2;
}

/** The prediction from the objects before the rollout. A rollout with an unknown load balancer has none. */
function predict(objects: RolloutObjects, { config, warn }: CommandContext): RolloutReport | undefined {
  const { loadBalancer } = config.rollout;
  try {
    return rolloutReport(objects, config.rollout);
  } catch (error) {
    const isNamed = loadBalancer !== undefined;
    if (!(error instanceof ConfigError) || error.code !== 'rollout.load-balancer' || isNamed) throw error;
    warn(`no prediction: ${messageOf(error)}`);
    return undefined;
  }
}

/** A cluster without agents is watched without them. */
async function agentsOrNone({ findAgents, warn }: CommandContext): Promise<Pick<FoundAgents, 'agents'> & Disposable> {
  try {
    return await findAgents();
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    warn(`nodes' applies and lost packets will not be seen: ${messageOf(error)}`);
    return { agents: [], [Symbol.dispose]: () => undefined };
  }
}

async function writePage(file: string, page: string): Promise<void> {
  try {
    await writeFile(file, page);
  } catch (cause) {
    throw new HostError('watch.page', `cannot write the page to ${file}: ${messageOf(cause)}`, { cause });
  }
}
