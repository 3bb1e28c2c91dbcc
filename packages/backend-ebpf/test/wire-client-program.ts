/**
 * Requests that the lab's probers do not have, as a program of a client:
 *
 *   reopen ADDRESS PORT COUNT   connects from one port again and again, each time broken off by an RST; prints how often it was answered
 *   datagram ADDRESS PORT BYTES sends one datagram; prints whether it was answered within a second
 *   bulk ADDRESS PORT BYTES     sends bytes to an echo server; prints how many came back within 20 s
 */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [what = '', address = '', port = '', amount = ''] = process.argv.slice(2);
const works = { reopen, datagram, bulk } as const;
const result = await works[what as keyof typeof works](Number(amount));
process.stdout.write(`${result}\n`);
process.exit();

async function reopen(count: number): Promise<number> {
  let answered = 0;
  for (let round = 0; round < count; round++) {
    if (await openOnce()) answered++;
    await sleep(5); // the RST is on its way
  }
  return answered;
}

function openOnce(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port: Number(port), localPort: 33_333 });
    socket.setTimeout(500, () => socket.destroy(new Error('late')));
    socket.once('data', () => {
      resolve(true);
      socket.resetAndDestroy();
    });
    socket.once('error', () => resolve(false));
  });
}

async function datagram(bytes: number): Promise<boolean> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  const answered = new Promise<boolean>((resolve) => socket.once('message', () => resolve(true)));
  socket.send(Buffer.alloc(bytes), Number(port), address);
  return Promise.race([answered, sleep(1000, false)]);
}

async function bulk(bytes: number): Promise<number> {
  const socket = connect({ host: address, port: Number(port) });
  let received = 0;
  const done = new Promise<void>((resolve) => {
    socket.once('data', () => socket.write(Buffer.alloc(bytes)));
    socket.on('data', (data) => {
      received += data.length;
      if (received >= bytes) resolve();
    });
    socket.once('error', () => resolve());
  });
  await Promise.race([done, sleep(20_000)]);
  return received;
}
