/**
 * Runs inside a lab host's namespace and makes connection attempts on request over Node's IPC channel. With
 * arguments instead (PROTOCOL ADDRESS PORT [COUNT]) it makes COUNT attempts, one after another, and prints a line for each.
 */
import { connectionHandlers } from '../kept-connections.ts';
import { probe } from '../probe.ts';
import { SctpSender } from '../sctp-sender.ts';
import type { CallHandlers, ProbeCall, ProbeReply, ProberCalls, ProbeRequest, ProbeResult } from '../probe-types.ts';

const sctp = new SctpSender();
const handlers: CallHandlers<ProberCalls> = {
  probe,
  sctp: (request) => sctp.attempts(request),
  ...connectionHandlers(),
};

if (process.send === undefined) {
  const [protocol = 'http', address = '::1', port = '80', count = '1'] = process.argv.slice(2);
  const request = { protocol, address, port: Number(port) } as ProbeRequest;
  for (let left = Number(count); left > 0; left--) process.stdout.write(`${describe(await probe(request))}\n`);
} else {
  process.on('message', ({ id, name, argument }: ProbeCall) => {
    // The owner is of the same version.
    const handle = handlers[name] as (argument: unknown) => Promise<unknown>;
    void handle(argument).then((result) => reply({ id, result }));
  });
  process.on('disconnect', () => process.exit(0)); // the lab's owner has gone
  reply({ id: 0 });
}

function describe(result: ProbeResult): string {
  const took = `${result.took.toFixed(1)} ms`;
  if (result.status === 'unreachable') return `unreachable (${result.code}), ${took}`;
  if (result.status !== 'answered') return `${result.status}, ${took}`;
  const by = result.by === undefined ? '' : ` by ${result.by} on ${result.node}, which saw ${result.seenSource}`;
  const status = result.httpStatus === undefined ? '' : ` ${result.httpStatus}`;
  return `answered${status}${by}, ${took}`;
}

function reply(message: ProbeReply): void {
  process.send?.(message);
}
