import { type HttpAnswer, textAnswer } from '@switchyard/core/health';
import { explainAnswer } from './debug-explain.ts';
import { forwardingAnswer } from './debug-forwarding.ts';
import type { DebugState } from './debug-state.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { get, type Route } from './route.ts';

/** Ours: `/debug/forwarding`, `/debug/explain`, `/debug/dump`. They read and change nothing. */
export function debugRoutes(state: DebugState): readonly Route[] {
  return [
    get('/debug/forwarding', (request) => forwardingAnswer(state, request)),
    get('/debug/explain', (request) => explainAnswer(state, request)),
    get(
      '/debug/dump',
      oneAtATime((_, signal) => dumpAnswer(state, signal)),
    ),
  ];
}

/** What is in the kernel, read from it now: what `--switchyard-dump` prints, family by family. */
async function dumpAnswer({ dumps }: DebugState, signal: AbortSignal): Promise<HttpAnswer> {
  const texts: string[] = [];
  for (const dump of dumps) texts.push(await dump(signal));
  return textAnswer(200, texts.join('\n'));
}
