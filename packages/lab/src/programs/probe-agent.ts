/**
 * Runs inside a lab host's namespace and makes connection attempts on request over Node's IPC channel. With
 * arguments instead (PROTOCOL ADDRESS PORT [TIMEOUT]) it makes one and prints the result as JSON.
 */
import { probe } from '../probe.ts';
import type { ProbeRequest } from '../probe-types.ts';
import type { ProbeCall, ProbeReply } from '../prober.ts';

const send = process.send?.bind(process);
if (send === undefined) {
  const [protocol = 'http', address = '::1', port = '80', timeout = '1500'] = process.argv.slice(2);
  const request = { protocol, address, port: Number(port), timeout: Number(timeout) } as ProbeRequest;
  process.stdout.write(`${JSON.stringify(await probe(request))}\n`);
} else {
  process.on('message', (call: ProbeCall) => {
    void probe(call.request).then((result) => send({ id: call.id, result } satisfies ProbeReply));
  });
  process.on('disconnect', () => process.exit(0)); // the lab's owner has gone
  send({ id: 'ready' });
}
