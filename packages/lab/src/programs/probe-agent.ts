/**
 * Runs inside a lab host's namespace and makes connection attempts on request over Node's IPC channel. With
 * arguments instead (PROTOCOL ADDRESS PORT [COUNT]) it makes COUNT attempts, one after another, and prints a line for each.
 */
import { type AskingSocket, type HeldConnection, openAskingSocket, openConnection } from '../kept-connections.ts';
import { awaitAnswer, probe } from '../probe.ts';
import type { ProbeCall, ProbeReply, ProbeRequest, ProbeResult } from '../probe-types.ts';

const connections = new Map<number, HeldConnection>();
const sockets = new Map<number, AskingSocket>();

if (process.send === undefined) {
  const [protocol = 'http', address = '::1', port = '80', count = '1'] = process.argv.slice(2);
  const request = { protocol, address, port: Number(port) } as ProbeRequest;
  for (let left = Number(count); left > 0; left--) process.stdout.write(`${describe(await probe(request))}\n`);
} else {
  process.on('message', (call: ProbeCall) => void answer(call).then(reply));
  process.on('disconnect', () => process.exit(0)); // the lab's owner has gone
  reply({ id: 0, kind: 'ready' });
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

async function answer(call: ProbeCall): Promise<ProbeReply> {
  const { id } = call;
  switch (call.kind) {
    case 'probe':
      return { id, kind: 'result', result: await probe(call.request) };
    case 'await':
      return { id, kind: 'awaited', ...(await awaitAnswer(call.request, call.until)) };
    case 'open': {
      const start = performance.now();
      const { outcome, connection } = await openConnection(call.request);
      if (connection !== undefined) connections.set(id, connection);
      return { id, kind: 'result', result: { ...outcome, took: performance.now() - start } };
    }
    case 'connect':
      sockets.set(id, await openAskingSocket(call.request));
      return { id, kind: 'connected' };
    case 'ask': {
      const start = performance.now();
      const outcome = await sockets.get(call.connection)?.ask(call.timeout);
      const took = performance.now() - start;
      return { id, kind: 'result', result: { ...(outcome ?? { status: 'unreachable', code: 'EBADF' }), took } };
    }
    case 'exchange': {
      const connection = connections.get(call.connection);
      const exchange = await connection?.exchange(call.text, call.timeout);
      return { id, kind: 'exchange', exchange: exchange ?? { status: 'closed' } };
    }
    case 'close':
      connections.get(call.connection)?.close();
      connections.delete(call.connection);
      sockets.get(call.connection)?.close();
      sockets.delete(call.connection);
      return { id, kind: 'exchange', exchange: { status: 'closed' } };
  }
}
