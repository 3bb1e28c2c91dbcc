import { existsSync } from 'node:fs';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { seconds, systemClock } from '@switchyard/core';
import { apiResources, type EndpointSlice } from '@switchyard/core/kubernetes';
import { type LabCluster, type LabNode, startCluster, waitForAgents } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from './agent-log.ts';

// How much code a newcomer reads to follow one EndpointSlice event from the watch to the kernel (nftables).

const { signal } = new AbortController();
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const hook = fileURLToPath(new URL('./executed-files.ts', import.meta.url));
const walk = new URL('../../../../ARCHITECTURE.md', import.meta.url);
const rounds = 4;
/** Lower these with each file that leaves the path. */
const mostExecuted = 68;
const mostOnPath = 20;

/** Executed files beside the path: what they do, and which they are. */
const besidePath: Readonly<Record<string, RegExp>> = {
  'connects the stages of the agent': /^apps\/node-agent\//,
  'measures and logs': /^packages\/host\/|(-metrics|-status|-counts|-log|heartbeat|api-server-connection)\.ts$/,
  'acts after the write': /core\/src\/(health|engine\/conntrack)\/|family-flows\.ts$/,
  'separates foreign changes from our own': /\/watch\/|netfilter\/src\/nftables\/|drift-watch\.ts$|rtnetlink\//,
  'delays the first apply': /start-condition\.ts$/,
  'encodes netlink messages, for every user of netlink': /^packages\/native\/src\/(netlink\/|netlink-socket)/,
  'defines words of all stages': /core\/src\/(base|model\/(ip|records))\//,
};

let cluster: LabCluster;
let node: LabNode;

beforeAll(async () => {
  cluster = await startCluster({ name: 'evfiles', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  [node] = cluster.lab.nodes as [LabNode];
});

afterAll(() => cluster?.[Symbol.asyncDispose]());

const metadata = { name: 'cart', namespace: 'default' };

function slice(round: number): EndpointSlice {
  return {
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'cart' } },
    addressType: 'IPv4',
    ports: [{ port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: [addressOf(round)], conditions: { ready: true } }],
  };
}

function addressOf(round: number): string {
  return `10.244.9.${round + 1}`;
}

async function untilInKernel(round: number): Promise<void> {
  await until(async () => (await node.run('nft', ['list', 'ruleset'])).stdout.includes(addressOf(round)));
}

/** Starts the agent from its sources. The result returns the files that executed since the last call. */
async function startTraced(): Promise<() => Promise<readonly string[]>> {
  const program = join(cluster.lab.folder, 'agent-from-sources');
  const report = join(cluster.lab.folder, 'executed');
  const flags = `--conditions=@switchyard/source --expose-gc --import ${hook}`;
  await writeFile(program, `#!/bin/sh\nexec ${process.execPath} ${flags} ${main} "$@"\n`);
  await chmod(program, 0o755);
  const agent = cluster.startAgent(node, { program, env: { EXECUTED_FILES: report } });
  await waitForAgents(cluster.lab, [agent], signal);
  let reports = 0;
  return async () => {
    const file = `${report}.${reports++}`;
    process.kill(agent.pid, 'SIGUSR2');
    await until(async () => existsSync(file));
    return JSON.parse(await readFile(file, 'utf8')) as readonly string[]; // written by executed-files.ts
  };
}

/** Files that each of several EndpointSlice events executes: timers that fire now and then drop out. */
async function executedFiles(): Promise<readonly string[]> {
  const { api } = cluster;
  const take = await startTraced();
  const spec = { ports: [{ port: 80, protocol: 'TCP' as const }] };
  await api.create(apiResources.services, { metadata, spec }, signal);
  await api.create(apiResources.endpointSlices, slice(0), signal);
  await untilInKernel(0);
  let inAll: ReadonlySet<string> | undefined;
  for (let round = 1; round <= rounds; round++) {
    await systemClock.sleep(seconds(1.5), signal);
    await take();
    await api.update(apiResources.endpointSlices, slice(round), signal);
    await untilInKernel(round);
    const executed = new Set(await take());
    inAll = inAll?.intersection(executed) ?? executed;
  }
  return [...(inAll ?? [])];
}

test('the path of an EndpointSlice event is bounded, and ARCHITECTURE.md names each file of it', async () => {
  const executed = await executedFiles();
  const path = executed.filter((file) => !Object.values(besidePath).some((beside) => beside.test(file)));
  const text = await readFile(walk, 'utf8');
  const section = text.slice(text.indexOf('## One EndpointSlice event'), text.indexOf('## Packages'));
  const named = new Set(section.match(/(?<=`)[a-z-]+\.ts(?=`)/g));
  expect(path.filter((file) => !named.has(basename(file)))).toEqual([]);
  expect(path.length, path.join('\n')).toBeLessThanOrEqual(mostOnPath);
  expect(executed.length, executed.join('\n')).toBeLessThanOrEqual(mostExecuted);
  expect(path).toContain('packages/core/src/kubernetes/reflector.ts');
});
