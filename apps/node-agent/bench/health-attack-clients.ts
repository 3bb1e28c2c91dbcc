// The clients of health-attack.ts, in the network namespace they are started in:
// node health-attack-clients.ts attack|probe JSON
import { get } from 'node:http';
import { connect } from 'node:net';

interface AttackOptions {
  readonly address: string;
  readonly port: number;
  readonly connections: number;
  /** Pipelined on each connection, as many as the other side takes. */
  readonly requests: number;
  /** Empty: the first half of a request. */
  readonly path: string;
}

interface ProbeOptions {
  readonly address: string;
  /** Milliseconds; 0 is one probe. */
  readonly time: number;
}

/** Sends and never reads, until it is killed. */
function attack({ address, port, connections, requests, path }: AttackOptions): void {
  const text = path === '' ? 'GET /healthz HTTP/1.1\r\nHo' : `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(requests);
  for (let count = 0; count < connections; count++) {
    const client = connect(port, address, () => client.write(text));
    client.pause().on('error', () => undefined);
  }
  setInterval(() => undefined, 60_000);
}

/** One after the other; each waits a tenth of a second after the answer before it. */
async function probe({ address, time }: ProbeOptions): Promise<void> {
  const end = performance.now() + time;
  const livez: (number | null)[] = [];
  const metrics: (number | null)[] = [];
  do {
    livez.push(await timeOf(address, 10_256, '/livez'));
    metrics.push(await timeOf('127.0.0.1', 10_249, '/metrics'));
    await new Promise((resolve) => setTimeout(resolve, 100));
  } while (performance.now() < end);
  process.stdout.write(JSON.stringify({ livez, metrics }));
}

/** Milliseconds until the whole answer is there; null: none within 30 s. */
function timeOf(host: string, port: number, path: string): Promise<number | null> {
  const begin = performance.now();
  return new Promise((resolve) => {
    const request = get({ host, port, path, agent: false, timeout: 30_000 }, (response) => {
      response.resume().on('end', () => resolve(performance.now() - begin));
      response.on('error', () => resolve(null));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(null));
  });
}

const [kind, options = '{}'] = process.argv.slice(2);
if (kind === 'attack') attack(JSON.parse(options) as AttackOptions);
else await probe(JSON.parse(options) as ProbeOptions);
