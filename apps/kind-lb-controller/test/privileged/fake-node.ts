/**
 * Plays a Kubernetes node towards a load balancer: a NodePort that says which node answered, held open as long as the
 * client likes, and a health-check port.
 *
 *   NAME NODE_PORT HEALTH_PORT     over IPC: { health: STATUS }, answered by { health: STATUS, at: WALL_CLOCK_MS }
 */
import { createServer } from 'node:http';

const [name = '', nodePort = '', healthPort = ''] = process.argv.slice(2);
let health = 200;

createServer((request, response) => {
  const { remoteAddress, remotePort, localAddress, localPort } = request.socket;
  const answer = JSON.stringify({
    pod: name,
    node: name,
    protocol: 'http',
    source: remoteAddress,
    sourcePort: remotePort,
    destination: localAddress,
    destinationPort: localPort,
  });
  // `/slow` is answered after a while: a connection that lives through a reload.
  const delay = request.url === '/slow' ? 2000 : 0;
  setTimeout(() => response.end(answer), delay);
}).listen(Number(nodePort), '::');

createServer((request, response) => {
  response.writeHead(request.url === '/healthz' ? health : 404);
  response.end();
}).listen(Number(healthPort), '::', () => process.send?.('ready'));

process.on('message', (message: { readonly health: number }) => {
  health = message.health;
  process.send?.({ health, at: performance.timeOrigin + performance.now() });
});
