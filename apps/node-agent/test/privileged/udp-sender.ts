/**
 * Sends a datagram every millisecond from one port, as a resolver or a telemetry client does, and reports who answered.
 * Arguments: ADDRESS PORT SOURCE_PORT. Each message from the parent is answered by the figures so far; `stop` ends the
 * sending before, so that answers on their way can be waited for.
 */
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';

/** Figures since the start. */
export interface SenderFigures {
  readonly sent: number;
  /** Answers by the pod's name. */
  readonly answers: Readonly<Record<string, number>>;
  /** ICMP errors and the like. */
  readonly errors: number;
}

const [address = '', port = '', sourcePort = ''] = process.argv.slice(2);
const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
const answers: Record<string, number> = {};
let sent = 0;
let errors = 0;
let sending: NodeJS.Timeout | undefined;

socket.on('error', () => errors++);
socket.on('message', (message) => {
  const { pod } = JSON.parse(message.toString()) as { readonly pod: string };
  answers[pod] = (answers[pod] ?? 0) + 1;
});
socket.bind(Number(sourcePort), () => {
  socket.connect(Number(port), address, () => {
    sending = setInterval(() => {
      sent++;
      socket.send('who', (error) => {
        if (error !== null) errors++;
      });
    }, 1);
    process.send?.('ready');
  });
});
process.on('message', (message) => {
  if (message === 'stop') clearInterval(sending);
  process.send?.({ sent, answers, errors } satisfies SenderFigures);
});
process.on('disconnect', () => process.exit(0));
