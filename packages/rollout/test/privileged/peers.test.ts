import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parsePeersOptions, type PeersOptions } from '../../bench/peers/options.ts';
import { runPeers } from '../../bench/peers/run-peers.ts';
import { markdownText, type PeersReport, terminalText } from '../../bench/peers/report.ts';

// The comparison at a tiny size. Our agent reads a kube-proxy's configuration file, so it stands in for the kube-proxy.

const agent = fileURLToPath(new URL('../../../../apps/node-agent/bin/switchyard-agent', import.meta.url));
const small = '--size 20 --mode nftables --rounds 1 --changes 10 --churn 20 --burst 5 --connects 200 --settle 0';
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swy-peers-'));
});

afterAll(() => rm(folder, { recursive: true }));

const optionsOf = (kubeProxy: string, ...more: readonly string[]): Promise<PeersOptions> =>
  parsePeersOptions(['--kube-proxy', kubeProxy, ...small.split(' '), ...more], folder);

function compare(options: PeersOptions): Promise<PeersReport> {
  const run = { labName: 'peerst', version: 'test', progress: () => undefined };
  return runPeers(options, run, AbortSignal.timeout(100_000));
}

/** A program that takes the place of kube-proxy. */
async function script(name: string, text: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, `#!/bin/sh\n${text}\n`);
  await chmod(file, 0o755);
  return file;
}

test('two proxies take turns, and each has plausible figures of everything', async () => {
  const report = await compare(await optionsOf(agent, '--patience', '60'));
  expect(report).toMatchObject({ apiServer: 'lab', left: [], versions: { switchyard: 'test' } });
  expect(report.figures.map(({ peer, services }) => [peer, services])).toEqual([
    ['kube-proxy nftables', 20],
    ['switchyard nftables', 20],
  ]);
  for (const figures of report.figures) {
    expect(figures).toMatchObject({ late: [], failure: undefined });
    expect(figures.changes).toHaveLength(10);
    expect(figures.burstEach).toHaveLength(5);
    const { coldStarts, restarts, burstTails, connectBare, connectDirect, connectService } = figures;
    for (const samples of [coldStarts, restarts, burstTails, connectBare, connectDirect, connectService])
      expect(samples).toHaveLength(1);
    // Of a busy machine; what is wrong by an order of magnitude is no measurement.
    for (const time of [...figures.changes, ...figures.burstEach]) expect(time).toBeLessThan(10_000);
    for (const time of [...coldStarts, ...restarts]) expect(time).toBeGreaterThan(20);
    for (const time of [...connectBare, ...connectDirect, ...connectService]) {
      expect(time).toBeGreaterThan(1);
      expect(time).toBeLessThan(10_000);
    }
    for (const memory of [...figures.rssAfterSync, figures.rssAfterChanges]) {
      expect(memory).toBeGreaterThan(20);
      expect(memory).toBeLessThan(400);
    }
  }
  const rows = markdownText(report)
    .split('\n')
    .filter((line) => line.startsWith('|'));
  expect(rows[0]).toBe('| figure | kube-proxy nftables | switchyard nftables |');
  expect(rows).toHaveLength(18);
  expect(rows.filter((row) => row.includes('| - |'))).toEqual([]);
});

test('a proxy that never writes a rule is late, and the other one takes its turn', async () => {
  const options = await optionsOf(await script('idle', 'exec sleep 1000'), '--patience', '2');
  const report = await compare(options);
  expect(report.figures).toMatchObject([{ late: ['cold start'] }, { failure: undefined }]);
  expect(report.figures[1]?.connectBare).toHaveLength(1); // on a busy machine two seconds may be short for it, too
  expect(terminalText(report)).toMatch(/cold start, ms +> 2 s/);
});

test('a proxy that ends by itself has failed, and the other one is measured in full', async () => {
  const { figures } = await compare(await optionsOf(await script('ends', 'echo "no such mode" >&2; exit 3')));
  expect(figures).toMatchObject([{ failure: 'it ended with 3: no such mode' }, { late: [], failure: undefined }]);
  expect(figures[1]?.restarts).toHaveLength(1);
});
