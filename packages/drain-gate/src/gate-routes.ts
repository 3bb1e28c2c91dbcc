import { type IpAddress, messageOf, seconds, tryParseIp } from '@switchyard/core';
import { type HttpAnswer, type HttpHandler, jsonAnswer, textAnswer } from '@switchyard/core/health';
import { connectionsWaits, type DrainAnswer, type DrainRequest } from './drain.ts';
import { openText } from './protocol.ts';

/** Answers of a gate. */
export interface GateRoutesOptions {
  readonly isInSync: () => boolean;
  readonly drain: (request: DrainRequest, signal: AbortSignal) => Promise<DrainAnswer>;
  readonly log: (goal: DrainRequest['goal'], answer: DrainAnswer) => void;
}

const usage = [
  'usage: /drain?pod=ADDRESS[,ADDRESS][&seconds=N][&connections=wait|wait-udp|ignore][&format=text|json]',
  '       /ready?pod=ADDRESS[,ADDRESS][&seconds=N][&format=text|json]',
  '  /drain answers 200 when the pod can be stopped without a lost request, /ready when every node has applied that it is ready.',
  '  When the time is over: 503, with the reasons.',
  '  pod          its addresses, as status.podIPs has them',
  '  seconds      longest wait, 1 to 3600; default 20, less than the usual terminationGracePeriodSeconds',
  '  connections  wait (default) for its TCP connections and SCTP associations; wait-udp: also for UDP flows in use; or ignore them',
  '',
].join('\n');

/** Requests that wait; each costs a few KB. */
const maxWaiting = 5000;

/** `/drain`, and `/healthz` for probes. */
export function gateHandler({ isInSync, drain, log }: GateRoutesOptions): HttpHandler {
  let waiting = 0;
  const answer = async (
    goal: DrainRequest['goal'],
    query: URLSearchParams,
    signal: AbortSignal,
  ): Promise<HttpAnswer> => {
    const request = parse(goal, query);
    if (typeof request === 'string') return textAnswer(400, `${request}\n\n${usage}`);
    if (waiting >= maxWaiting) return textAnswer(429, `429 ${maxWaiting} others wait; try again later\n`);
    waiting++;
    try {
      const outcome = await drain(request, signal);
      log(goal, outcome);
      const status = outcome.isSafe ? 200 : 503;
      return query.get('format') === 'json'
        ? jsonAnswer(status, outcome)
        : textAnswer(status, drainText(goal, outcome));
    } catch (error) {
      return textAnswer(500, `500 ${messageOf(error)}\n`); // also for a client that has gone, which does not get it
    } finally {
      waiting--;
    }
  };
  return ({ path, query }, signal) => {
    if (path === '/healthz') return isInSync() ? textAnswer(200, 'ok\n') : textAnswer(503, 'not in sync yet\n');
    const goal = goals[path];
    return goal === undefined ? textAnswer(404, '404 page not found\n') : answer(goal, query, signal);
  };
}

const goals: Readonly<Record<string, DrainRequest['goal']>> = { '/drain': 'stop', '/ready': 'start' };

function parse(goal: DrainRequest['goal'], query: URLSearchParams): DrainRequest | string {
  for (const name of query.keys()) {
    if (!['pod', 'seconds', 'connections', 'format'].includes(name)) return `unknown parameter ${JSON.stringify(name)}`;
    if (query.getAll(name).length > 1) return `${name} is given more than once`;
  }
  const texts = (query.get('pod') ?? '').split(',');
  const addresses = texts.map((text) => tryParseIp(text)).filter((one): one is IpAddress => one !== undefined);
  if (addresses.length < texts.length) return `pod ${JSON.stringify(query.get('pod') ?? '')} is no list of addresses`;
  const time = query.get('seconds') ?? '20';
  if (!/^\d{1,4}$/.test(time) || Number(time) < 1 || Number(time) > 3600)
    return `seconds ${JSON.stringify(time)} is no number from 1 to 3600`;
  const wait = query.get('connections') ?? 'wait';
  const connections = connectionsWaits.find((one) => one === wait);
  if (connections === undefined) return `connections ${JSON.stringify(wait)} is none of ${connectionsWaits.join(', ')}`;
  const format = query.get('format') ?? 'text';
  if (format !== 'text' && format !== 'json') return `format ${JSON.stringify(format)} is neither text nor json`;
  return { addresses, timeout: seconds(Number(time)), connections, goal };
}

/** Before the pod. */
export function verdictText(goal: DrainRequest['goal'], isSafe: boolean): string {
  if (goal === 'stop') return isSafe ? 'safe to stop' : 'not safe to stop';
  return isSafe ? 'ready on all nodes:' : 'not ready on all nodes:';
}

/** Reasons in one answer; more are counted. */
const maxReasons = 20;

/** One line, and one for each reason. */
export function drainText(
  goal: DrainRequest['goal'],
  { isSafe, addresses, waited, nodes, open, reasons, services }: DrainAnswer,
): string {
  const { slowest, applied, total } = nodes;
  const last = slowest === undefined ? '' : `, the last ${slowest.node} after ${Math.round(slowest.after)} ms`;
  const counted = Object.keys(open).length === 0 ? '' : `, ${openText(open)}`;
  const pod = `${addresses.join(',')} (${services.join(', ') || 'no Service'})`;
  const head = `${verdictText(goal, isSafe)} ${pod} after ${Math.round(waited)} ms: applied by ${applied} of ${total} nodes${last}${counted}`;
  const more = reasons.length > maxReasons ? [`and ${reasons.length - maxReasons} more`] : [];
  return `${[head, ...reasons.slice(0, maxReasons), ...more].join('\n  ')}\n`;
}
