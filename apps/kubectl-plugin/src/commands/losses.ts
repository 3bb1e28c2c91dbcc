import { messageOf } from '@switchyard/core';
import { askLines } from '../access/ask.ts';
import type { Agent } from '../access/agents.ts';
import { textLine } from '../text-table.ts';
import type { CommandContext, ExitStatus } from './context.ts';

/** A line of an agent's `/debug/losses`. */
interface LossLine {
  readonly time: string;
  readonly node: string;
  readonly packets?: { readonly watched: boolean; readonly why?: string };
  readonly missed?: number;
  readonly cause?: string;
  readonly why?: string;
  readonly certainty?: string;
  readonly service?: string;
  readonly services?: readonly string[];
  readonly frontend?: string;
  readonly client?: string;
  readonly direction?: string;
  readonly where?: { readonly netns: string; readonly hook?: string };
  readonly count?: number;
}

const head = ['TIME', 'NODE', 'FROM', 'SERVICE', 'ASKED', 'WHERE', 'COUNT', 'CAUSE', 'WHY'];
const widths = [8, 12, 15, 24, 22, 16, 5, 18];
const defaultSeconds = 10;
/** The agents' limit; a followed stream begins again. */
const maxSeconds = 3600;

/** `losses`: a live table of all nodes. */
export async function lossesCommand(context: CommandContext, signal: AbortSignal): Promise<ExitStatus> {
  const { config, findAgents, print, warn } = context;
  using found = await findAgents(config.node === undefined ? undefined : [config.node]);
  if (!config.isJson) print(textLine(head, widths));
  let isLost = false;
  const onLine = (line: LossLine): void => {
    if (line.packets?.watched === false) warn(`${line.node}: only refusals are shown: ${line.packets.why}`);
    if (line.cause === undefined && line.missed === undefined) return;
    isLost = true;
    print(config.isJson ? `${JSON.stringify(line)}\n` : lineText(line));
  };
  const all = await Promise.allSettled(found.agents.map((agent) => watch(agent, { context, onLine }, signal)));
  for (const one of all) if (one.status === 'rejected' && !signal.aborted) warn(messageOf(one.reason));
  if (all.length > 0 && all.every(({ status }) => status === 'rejected') && !signal.aborted)
    throw (all[0] as PromiseRejectedResult).reason;
  return isLost ? 2 : 0;
}

interface WatchOptions {
  readonly context: CommandContext;
  readonly onLine: (line: LossLine) => void;
}

async function watch(agent: Agent, { context, onLine }: WatchOptions, signal: AbortSignal): Promise<void> {
  const { follow, namespace, seconds } = context.config;
  const time = follow ? maxSeconds : (seconds ?? defaultSeconds);
  const only = namespace === undefined ? '' : `&namespace=${encodeURIComponent(namespace)}`;
  const path = `/debug/losses?format=json&seconds=${time}${only}`;
  for await (const line of askLines<LossLine>(agent, path, signal)) onLine(line);
  if (follow && !signal.aborted) await watch(agent, { context, onLine }, signal); // an hour later
}

function lineText(line: LossLine): string {
  const time = line.time.slice(11, 19);
  if (line.cause === undefined)
    return `${time}   ${line.node}: ${line.missed} more dropped packets, of too many flows\n`;
  const others = (line.services?.length ?? 0) > 1 ? ` +${(line.services?.length ?? 0) - 1}` : '';
  const where = [line.where?.netns ?? '', line.where?.hook ?? ''].join(' ').trim();
  const why = `${line.certainty === 'likely' ? 'likely: ' : ''}${line.direction === 'answer' ? 'answer: ' : ''}${line.why}`;
  const cells = [time, line.node, line.client ?? '-', `${line.service ?? '-'}${others}`, line.frontend ?? '-', where];
  return textLine([...cells, String(line.count ?? 0), line.cause, why], widths);
}
