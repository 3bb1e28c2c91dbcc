// Runs inside a network namespace: listens on HOST PORT, gives the socket to its parent, and exits.
import { createServer } from 'node:net';

const [host, port] = process.argv.slice(2);
const server = createServer();
server.once('error', (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
  process.disconnect();
});
server.listen({ host, port: Number(port) }, () => {
  process.once('message', () => process.exit(0));
  process.send?.('listening', server);
});
