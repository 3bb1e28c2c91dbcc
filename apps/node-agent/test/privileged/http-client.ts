import type { LabNode } from '@switchyard/lab';

/** One request, sent from inside a node. */
export interface InsideRequest {
  readonly path: string;
  /** Default: that of the metrics server. */
  readonly port?: number;
  /** Default: GET. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Response. Header names are in lower case. */
export interface InsideAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Runs in the node's network namespace: what listens on loopback there is heard nowhere else. */
const program = `
  const { path, port = 10249, method = 'GET', headers = {}, body = '' } = JSON.parse(process.argv[1]);
  const request = require('node:http').request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
    let text = '';
    response.on('data', (chunk) => (text += chunk));
    response.on('end', () => process.stdout.write(JSON.stringify({ status: response.statusCode, headers: response.headers, body: text })));
  });
  request.on('error', (error) => process.stdout.write(JSON.stringify({ status: 0, headers: {}, body: error.message })));
  request.end(body);
`;

/** Asks the node's own loopback, as a process on the node does; status 0 without an answer. */
export async function askInside(node: LabNode, request: InsideRequest | string): Promise<InsideAnswer> {
  const given = typeof request === 'string' ? { path: request } : request;
  const { stdout, stderr } = await node.run(process.execPath, ['-e', program, JSON.stringify(given)]);
  if (stdout === '') throw new Error(`no answer to ${given.path}: ${stderr}`);
  return JSON.parse(stdout) as InsideAnswer;
}
