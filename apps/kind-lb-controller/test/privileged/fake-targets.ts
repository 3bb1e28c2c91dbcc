/**
 * Plays load-balanced nodes and a client, all in one namespace. Each ADDRESS is a node: on port 30080 it answers with its own name, on 32080
 * its health check. Over IPC it takes a `TargetsRequest` and answers it with `{ id, result }`.
 */
import { createServer as createHttpServer, request } from 'node:http';
import { createServer } from 'node:net';

/** Control of the fake targets. */
export type TargetsRequest =
  | { readonly kind: 'health'; readonly address: string; readonly status: number; readonly weight?: number }
  /** A request every `gap` ms or, on a busy machine, as one of 50 ends; answered by how often each node answered; `lost` counts the others. */
  | {
      readonly kind: 'load';
      readonly url: string;
      readonly count: number;
      readonly gap: number;
      readonly timeout?: number;
    }
  /** Announcements in health checks of a node, each change once: the word, and the status of its answer. */
  | { readonly kind: 'announced'; readonly address: string }
  /** Requests one after the other. */
  | { readonly kind: 'get'; readonly url: string; readonly count: number };

const addresses = process.argv.slice(2);
const health = new Map(addresses.map((address) => [address, { status: 200, weight: undefined as number | undefined }]));
const announced = new Map(addresses.map((address) => [address, [] as string[]]));
const proxyV2 = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

for (const address of addresses) {
  createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (first) => {
      const hasHeader = first.subarray(0, 12).equals(proxyV2);
      const source = hasHeader ? ` from ${[...first.subarray(16, 20)].join('.')}` : '';
      const isSlow = first.includes('/slow');
      // A reload, or a node that is taken out, must not end it.
      setTimeout(
        () => socket.end(`HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n${address}${source}`),
        isSlow ? 2000 : 0,
      );
    });
  }).listen(30080, address);
  createHttpServer(({ headers }, response) => {
    const { status, weight } = health.get(address) ?? { status: 500, weight: undefined };
    const word = headers['switchyard-load-balancer'];
    const words = announced.get(address) ?? [];
    if (word !== undefined && words.at(-1) !== `${String(word)} ${status}`) words.push(`${String(word)} ${status}`);
    response.writeHead(status, weight === undefined ? {} : { 'X-Load-Balancing-Endpoint-Weight': `${weight}` });
    response.end();
  }).listen(32080, address, () => {
    if (address === addresses.at(-1)) process.send?.('ready');
  });
}

function get(url: string, timeout: number): Promise<string> {
  return new Promise((resolve) => {
    const outgoing = request(url, { agent: false, timeout }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () => resolve(text === '' ? 'lost' : text));
    });
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', () => resolve('lost'));
    outgoing.end();
  });
}

async function answer(message: TargetsRequest): Promise<unknown> {
  switch (message.kind) {
    case 'health':
      health.set(message.address, { status: message.status, weight: message.weight });
      return undefined;
    case 'announced':
      return announced.get(message.address);
    case 'get': {
      const tally: Record<string, number> = {};
      for (let n = 0; n < message.count; n++) {
        const by = await get(message.url, 5000);
        tally[by] = (tally[by] ?? 0) + 1;
      }
      return tally;
    }
    case 'load': {
      const { url, count, gap, timeout = 5000 } = message;
      const results: Promise<string>[] = [];
      const start = performance.now();
      for (let n = 0; n < count; n++) {
        const wait = start + n * gap - performance.now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        await results[n - 50]; // this program is the nodes, too: what waits for it is not lost
        results.push(get(url, timeout));
      }
      const all = Map.groupBy(await Promise.all(results), (by) => by);
      return Object.fromEntries([...all].map(([by, those]) => [by, those.length]));
    }
  }
}

process.on('message', (message: { readonly id: number; readonly request: TargetsRequest }) => {
  void answer(message.request).then((result) => process.send?.({ id: message.id, result }));
});
