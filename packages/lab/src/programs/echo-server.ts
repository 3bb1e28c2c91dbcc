/**
 * A pod's program: answers with its identity and its peer's address on any number of HTTP, TCP and UDP ports, both families.
 *
 *   --pod NAME --node NAME  [--http PORT]... [--tcp PORT]... [--udp PORT]...
 *   [--ready-after SECONDS] [--delay-shutdown SECONDS] [--host ADDRESS]
 *
 * HTTP: `/` answers the echo object, `/readyz` 200 or 503. TCP: the object and a newline at once, then echo. UDP: the
 * object for each datagram. SIGTERM: goes on serving for --delay-shutdown (default 0), then exits 0.
 */
import { parseArgs } from 'node:util';
import { type EchoIdentity, serveHttp, serveTcp, serveUdp } from '../echo-server.ts';

const { values } = parseArgs({
  options: {
    pod: { type: 'string' },
    node: { type: 'string', default: '' },
    host: { type: 'string' },
    http: { type: 'string', multiple: true, default: [] },
    tcp: { type: 'string', multiple: true, default: [] },
    udp: { type: 'string', multiple: true, default: [] },
    'ready-after': { type: 'string', default: '0' },
    'delay-shutdown': { type: 'string', default: '0' },
  },
});
const identity: EchoIdentity = { pod: values.pod ?? 'unnamed', node: values.node, host: values.host };
const readyAt = performance.now() + Number(values['ready-after']) * 1000;
const isReady = (): boolean => performance.now() >= readyAt;

process.once('SIGTERM', () => setTimeout(() => process.exit(0), Number(values['delay-shutdown']) * 1000));
process.once('SIGINT', () => process.exit(0));
// A port that is taken ends the process; its log names the port.
await Promise.all([
  ...values.http.map((port) => serveHttp(Number(port), identity, isReady)),
  ...values.tcp.map((port) => serveTcp(Number(port), identity)),
  ...values.udp.map((port) => serveUdp(Number(port), identity)),
]);
