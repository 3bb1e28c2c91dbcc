import { ConfigError, messageOf } from '@switchyard/core';
import type { Pod, Service } from '@switchyard/core/kubernetes';
import { openGate } from '../access/gate.ts';
import { movePod, type Moved } from '../drain/move-pod.ts';
import { nameOf, planDrain } from '../drain/drain-plan.ts';
import type { CommandContext, ExitStatus } from './context.ts';

/**
 * `drain NODE`: cordons the node, replaces its pods of Services one after another without a lost request, and leaves the rest to
 * `kubectl drain`. Exit status 2: a pod could not be replaced, and goes on.
 */
export async function drainCommand(context: CommandContext, signal: AbortSignal): Promise<ExitStatus> {
  const { config, kubectl, print, warn, clock } = context;
  const [node = ''] = config.operands;
  const begin = clock.now();
  using gate = await openGate(config.gate, { kubectl, avoid: node }, signal);
  const plan = planDrain(
    await list<Pod>(context, ['pods', `--field-selector=spec.nodeName=${node}`], signal),
    await list<Service>(context, ['services'], signal),
  );
  const [first] = plan.withData;
  if (first !== undefined && !config.deleteEmptyDirData) {
    throw new ConfigError(
      'drain.data',
      `nothing was changed: pod ${nameOf(first)} has data in an emptyDir, which its replacement would not have; see --delete-emptydir-data`,
    );
  }
  print(await kubectl.run(['cordon', node], signal).then((text) => `${text}\n`));
  for (const pod of plan.unprotected) {
    warn(
      `pod ${nameOf(pod)} has no preStop hook that asks the drain gate, and cannot be replaced before it ends: its eviction may lose requests`,
    );
  }
  const moved: Moved[] = [];
  let failures = 0;
  for (const move of plan.moves) {
    try {
      const one = await movePod(move, { kubectl, clock, gate, limit: config.timeout }, signal);
      moved.push(one);
      if (!config.isJson) print(movedText(one));
    } catch (error) {
      signal.throwIfAborted();
      failures++;
      warn(messageOf(error));
    }
  }
  if (failures > 0) {
    warn(`node ${node} is cordoned and not drained: ${failures} pods go on; run the same command again to continue`);
    return 2;
  }
  for (const { pod } of moved) await untilDeleted(pod, context, signal);
  const data = config.deleteEmptyDirData ? ['--delete-emptydir-data'] : [];
  const rest = await kubectl.run(
    ['drain', node, '--ignore-daemonsets', `--timeout=${config.timeout}s`, ...data],
    signal,
  );
  if (config.isJson) print(`${JSON.stringify({ node, moved }, undefined, 2)}\n`);
  else print(`${rest}\nnode/${node} is empty: ${moved.length} pods replaced in ${timeText(clock.now() - begin)}\n`);
  return 0;
}

async function list<T>(
  { kubectl }: CommandContext,
  args: readonly string[],
  signal: AbortSignal,
): Promise<readonly T[]> {
  const text = await kubectl.run(['get', ...args, '--all-namespaces', '--output=json'], signal);
  return (JSON.parse(text) as { readonly items: readonly T[] }).items;
}

/** `kubectl drain` refuses a pod that is of no controller any more, also while it ends. */
async function untilDeleted(pod: string, { kubectl, config }: CommandContext, signal: AbortSignal): Promise<void> {
  const [namespace, name] = pod.split('/');
  const args = ['wait', '--for=delete', `pod/${name}`, `--namespace=${namespace}`, `--timeout=${config.timeout}s`];
  await kubectl.run(args, signal).catch((error: unknown) => {
    if (!/not ?found/i.test(messageOf(error))) throw error; // it is deleted already
  });
}

function movedText({ pod, by, replaced, gate }: Moved): string {
  const left = gate === undefined ? 'its hook waits at the gate' : leftText(gate);
  return `pod/${pod} replaced${by.length === 0 ? '' : ` by ${by.join(', ')}`} in ${timeText(replaced)}; ${left}\n`;
}

function leftText({ nodes, open = {}, waited }: NonNullable<Moved['gate']>): string {
  const connections = Object.keys(open).length === 0 ? 'unknown' : 'all';
  const inUse = open['UDP'] === undefined || open['UDP'] === 0 ? '' : `; ${open['UDP']} UDP flows are in use`;
  return `${nodes.applied} nodes and ${connections} connections left it in ${Math.round(waited)} ms${inUse}`;
}

function timeText(time: number): string {
  return `${(time / 1000).toFixed(1)} s`;
}
