/**
 * Runs inside a lab host's namespace and makes connection attempts on request over Node's IPC channel. With
 * arguments instead (PROTOCOL ADDRESS PORT [TIMEOUT]) it makes one and prints the result as JSON.
 */
import { type HeldConnection, openConnection } from '../held-connection.ts';
import { probe } from '../probe.ts';
import type { ProbeRequest } from '../probe-types.ts';
import type { ProbeCall, ProbeReply } from '../prober-messages.ts';

const connections = new Map<number, HeldConnection>();

if (process.send === undefined) {
  const [protocol = 'http', address = '::1', port = '80', timeout = '1500'] = process.argv.slice(2);
  const request = { protocol, address, port: Number(port), timeout: Number(timeout) } as ProbeRequest;
  process.stdout.write(`${JSON.stringify(await probe(request))}\n`);
} else {
  process.on('message', (call: ProbeCall) => void answer(call).then(reply));
  process.on('disconnect', () => process.exit(0)); // the lab's owner has gone
  reply({ id: 0, kind: 'ready' });
}

function reply(message: ProbeReply): void {
  process.send?.(message);
}

async function answer(call: ProbeCall): Promise<ProbeReply> {
  const { id } = call;
  switch (call.kind) {
    case 'probe':
      return { id, kind: 'result', result: await probe(call.request) };
    case 'open': {
      const start = performance.now();
      const { outcome, connection } = await openConnection(call.request);
      if (connection !== undefined) connections.set(id, connection);
      return { id, kind: 'result', result: { ...outcome, took: performance.now() - start } };
    }
    case 'exchange': {
      const connection = connections.get(call.connection);
      const exchange = await connection?.exchange(call.text, call.timeout);
      return { id, kind: 'exchange', exchange: exchange ?? { status: 'closed' } };
    }
    case 'close':
      connections.get(call.connection)?.close();
      connections.delete(call.connection);
      return { id, kind: 'exchange', exchange: { status: 'closed' } };
  }
}
