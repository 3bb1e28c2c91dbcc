import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createServer, rootCertificates, type Server } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { seconds, systemClock } from '@switchyard/core';
import { listenInNamespace } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LogLine, readLog, until } from '../../privileged/agent-log.ts';
import { type FaultLab, startFaultLab } from './fault-lab.ts';

const program = fileURLToPath(new URL('../../../bin/switchyard-agent', import.meta.url));
const tls = (name: string): string =>
  readFileSync(new URL(`../../../../../packages/core/test/fixtures/tls/${name}`, import.meta.url), 'utf8');
const { signal } = new AbortController();
let lab: FaultLab;
let host: string;

beforeAll(async () => {
  lab = await startFaultLab('fconfig');
  host = lab.cluster.lab.apiServer.addresses.IPv4 ?? '';
  await lab.agents[0].stop();
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

interface Access {
  readonly server: string;
  readonly user?: object;
  readonly cluster?: object;
}

async function writeKubeconfig({ server, user = { token: 'lab-token' }, cluster = {} }: Access): Promise<string> {
  const contexts = [{ name: 'x', context: { cluster: 'x', user: 'x' } }];
  const clusters = [{ name: 'x', cluster: { server, ...cluster } }];
  const config = { 'current-context': 'x', contexts, clusters, users: [{ name: 'x', user }] };
  return writeText(JSON.stringify(config));
}

async function writeText(text: string): Promise<string> {
  const path = `${lab.cluster.lab.folder}/kubeconfig-test`;
  await writeFile(path, text);
  return path;
}

describe('a kubeconfig that cannot be used ends the agent with one line; the rules of the last run go on', () => {
  test.each<readonly [string, () => Promise<string>, RegExp]>([
    [
      'no such file',
      () => Promise.resolve('/no/such/file'),
      /cannot read the kubeconfig \/no\/such\/file: no such file/,
    ],
    ['a folder', () => Promise.resolve('/etc'), /cannot read the kubeconfig \/etc: illegal operation on a directory/],
    ['no YAML', () => writeText('clusters: [\n'), /kubeconfig .*: line 2, column 1: /],
    ['an empty file', () => writeText(''), /kubeconfig .*: it is not one YAML object/],
    ['no server', () => writeKubeconfig({ server: '' }), /clusters\[0\]\.cluster\.server is missing/],
    ['a server that is no URL', () => writeKubeconfig({ server: 'api' }), /server "api" is not an http or https URL/],
    [
      'a token file that is not there',
      () => writeKubeconfig({ server: 'https://x', user: { tokenFile: '/no/token' } }),
      /cannot read the token file \/no\/token: no such file/,
    ],
  ])('%s', async (...row) => {
    const [, write, expected] = row;
    const args = [
      '--proxy-mode=nftables',
      '--conntrack-max-per-core=0',
      '--oom-score-adj=0',
      '--hostname-override=node1',
      `--kubeconfig=${await write()}`,
    ];
    await lab.underLoad(async () => {
      const { exitCode, stderr } = await lab.nodes[0].run(program, args);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/^switchyard-agent: [^\n]*\n$/);
      expect(stderr).toMatch(expected);
    });
  });
});

/** The agent with this kubeconfig, until it has retried for 2 s: it reports each resource once, and changes nothing. */
async function watchItTry(kubeconfig: string, expected: RegExp): Promise<void> {
  const agent = lab.startAgent(0, { args: [`--kubeconfig=${kubeconfig}`, '-v=4'] });
  const count = async (text: string): Promise<number> =>
    (await readLog(agent)).filter(({ msg }) => msg.startsWith(text)).length;
  await until(async () => (await count('lost the API server')) >= 3 && (await count('still no connection')) > 4);
  await systemClock.sleep(seconds(2), signal);
  const log = await readLog(agent);
  const of = (text: string): readonly LogLine[] => log.filter(({ msg }) => msg.startsWith(text));
  expect(
    of('lost the API server')
      .map(({ resource }) => String(resource))
      .toSorted(),
  ).toEqual(expect.arrayContaining(['EndpointSlice', 'Node', 'Service']) as string[]);
  for (const { error } of of('lost the API server')) expect(error).toMatch(expected);
  expect(of('lost the API server').length).toBeLessThanOrEqual(4);
  expect(of('still no connection').length).toBeLessThan(40);
  expect(of('applied')).toEqual([]);
  const address = lab.nodes[0].addresses.IPv4 ?? '';
  const health = await lab.prober.probe({ protocol: 'http', address, port: 10_256, path: '/healthz' });
  expect(health).toMatchObject({ httpStatus: 503 });
}

/** The agent, running for some time, must come to know the cluster by itself now. */
async function expectItToRecover(): Promise<void> {
  await lab.setEndpoints('d');
  expect(await lab.awaitAnswerOf('d')).toBeLessThan(10_000);
  await lab.setEndpoints('a', 'c');
  await lab.agents[0].stop();
}

describe('a refused API server is retried at growing intervals; the rules of the last run stay', () => {
  test('a port without a listener, until there is one', async () => {
    await lab.underLoad(async () => {
      await watchItTry(await writeKubeconfig({ server: `http://${host}:6444` }), /ECONNREFUSED/);
      const { namespace } = lab.cluster.lab.apiServer;
      await lab.cluster.server.listen(await listenInNamespace({ namespace, host: '0.0.0.0', port: 6444 }, signal));
      await expectItToRecover();
    });
  });

  test.each([
    ['in the kubeconfig', (token: string) => ({ token })],
    ['in a file of its own', () => ({ tokenFile: 'token' })],
  ])('a token that is not accepted, until another one is %s', async (_, userOf) => {
    const { folder } = lab.cluster.lab;
    const fault = { kind: 'status', status: 401, body: 'Unauthorized' } as const;
    using _refusal = lab.cluster.server.faults.inject(fault, { authorization: /Bearer wrong/ });
    const write = async (token: string): Promise<string> => {
      await writeFile(`${folder}/token`, token);
      return writeKubeconfig({ server: `http://${host}:6443`, user: userOf(token) });
    };
    await lab.underLoad(async () => {
      await watchItTry(await write('wrong'), /answered 401: Unauthorized; check the credentials; they are read again/);
      await write('lab-token');
      await expectItToRecover();
    });
  });

  test('an account without rights, until it is given them', async () => {
    const fault = { kind: 'status', status: 403, body: 'forbidden: no RBAC policy matched' } as const;
    const refusal = lab.cluster.server.faults.inject(fault, { authorization: /lab-token/ });
    await lab.underLoad(async () => {
      const kubeconfig = await writeKubeconfig({ server: `http://${host}:6443` });
      await watchItTry(kubeconfig, /answered 403: forbidden.*; grant "list" and "watch" to this account/);
      refusal[Symbol.dispose]();
      await expectItToRecover();
    });
  });

  test('a server whose certificate is not of the CA in the kubeconfig', async () => {
    const { namespace } = lab.cluster.lab.apiServer;
    const secured = serveTls(new URL(lab.cluster.url));
    secured.listen(await listenInNamespace({ namespace, host: '0.0.0.0', port: 6445 }, signal));
    const trust = (ca: string): object => ({
      'certificate-authority-data': Buffer.from(ca).toString('base64'),
      'tls-server-name': 'api.test',
    });
    const server = `https://${host}:6445`;
    await lab.underLoad(async () => {
      const wrong = await writeKubeconfig({ server, cluster: trust(rootCertificates[0] ?? '') });
      await watchItTry(wrong, /unable to verify the first certificate|unable to get local issuer certificate/);
      await lab.agents[0].stop();
    });
    const right = await writeKubeconfig({ server, cluster: trust(tls('ca.crt')) });
    await lab.replaceAgent(0, { args: [`--kubeconfig=${right}`] });
    await expectItToRecover();
    secured.close();
  });
});

/** Speaks TLS, with the certificate of the fixtures, for a server that does not. */
function serveTls(upstream: URL): Server {
  return createServer({ key: tls('server.key'), cert: tls('server.crt') }, (socket) => {
    const inner = connect(Number(upstream.port), upstream.hostname);
    for (const one of [socket, inner]) one.on('error', () => void [socket, inner].map((each) => each.destroy()));
    socket.pipe(inner).pipe(socket);
  });
}
