/**
 * Sends a datagram every millisecond from one port, as a resolver or a telemetry client does, and reports who answered.
 * Arguments: ADDRESS PORT SOURCE_PORT. Each message from the parent is answered by the figures since the one before.
 */
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';

/** Figures of one span. */
export interface SenderFigures {
  readonly sent: number;
  /** Answers by the pod's name. */
  readonly answers: Readonly<Record<string, number>>;
  /** ICMP errors and the like. */
  readonly errors: number;
}

const [address = '', port = '', sourcePort = ''] = process.argv.slice(2);
const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
let sent = 0;
let errors = 0;
let answers: Record<string, number> = {};

socket.on('error', () => errors++);
socket.on('message', (message) => {
  const { pod } = JSON.parse(message.toString()) as { readonly pod: string };
  answers[pod] = (answers[pod] ?? 0) + 1;
});
socket.bind(Number(sourcePort), () => {
  socket.connect(Number(port), address, () => {
    setInterval(() => {
      sent++;
      socket.send('who', (error) => {
        if (error !== null) errors++;
      });
    }, 1);
    process.send?.('ready');
  });
});
process.on('message', () => {
  process.send?.({ sent, answers, errors } satisfies SenderFigures);
  [sent, errors, answers] = [0, 0, {}];
});
process.on('disconnect', () => process.exit(0));
