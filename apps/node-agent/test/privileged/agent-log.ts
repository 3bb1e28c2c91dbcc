import { readFile } from 'node:fs/promises';
import { until as untilFound } from '@switchyard/core/testing';
import type { LabProcess } from '@switchyard/lab';

/** One line of the agent's log. */
export interface LogLine {
  readonly level: string;
  readonly time: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** The agent's log so far, with what is no JSON as `msg` of level `text`. */
export async function readLog(agent: LabProcess): Promise<readonly LogLine[]> {
  return parseLog(await readFile(agent.logFile, 'utf8'));
}

/** The lines of a log, with what is no JSON as `msg` of level `text`. */
export function parseLog(text: string): readonly LogLine[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (line.startsWith('{') ? (JSON.parse(line) as LogLine) : { level: 'text', time: 0, msg: line }));
}

/** Resolves when `condition` holds; asks every 20 ms for 60 s at most. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  await untilFound('the condition of this test', condition);
}
