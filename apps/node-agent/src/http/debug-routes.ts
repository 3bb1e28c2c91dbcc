import { type HttpAnswer, textAnswer } from '@switchyard/core/health';
import { explainAnswer } from './debug-explain.ts';
import { forwardingAnswer } from './debug-forwarding.ts';
import type { DebugState } from './debug-state.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { get, type Route } from './route.ts';

/** Routes of Switchyard: `/debug/forwarding`, `/debug/explain`, `/debug/dump`. They only read. */
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

/** Returns the current kernel state, as `--switchyard-dump` prints it, family by family. */
async function dumpAnswer({ dumps }: DebugState, signal: AbortSignal): Promise<HttpAnswer> {
  const texts: string[] = [];
  for (const dump of dumps) texts.push(await dump(signal));
  return textAnswer(200, texts.join('\n'));
}
