import { fileURLToPath } from 'node:url';
import { apiResources } from '@switchyard/core/kubernetes';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../privileged/agent-log.ts';
import { openLoad } from '../../privileged/open-load.ts';
import { type DrainSite, openDrainSite } from './drain-site.ts';

// The real load balancer in front of a pod that moves from node to node, asks the gate before it ends, and then ends at once.

const { signal } = new AbortController();
const program = fileURLToPath(new URL('../../../../kind-lb-controller/bin/switchyard-lb', import.meta.url));
const prefix = 'lb.switchyard.dev/';
const named = { namespace: 'default', name: 'zeroapp' };
let site: DrainSite;

/** The site with a load balancer in front of it. */
async function openSite(): Promise<DrainSite> {
  await using stack = new AsyncDisposableStack();
  const options = { proxyMode: 'nftables', policy: 'Local', replicas: 1, isAlone: true } as const;
  // A thousand failing checks take longer than a hook waits: only announcements open the gate.
  const gateArgs = ['--health-check-failures=1000'];
  const found = stack.use(await openDrainSite({ ...options, gateArgs }, signal));
  const { lab, insideKubeconfig } = found.cluster;
  const { loadBalancer } = lab;
  const place = [`--address=${loadBalancer.addresses.IPv4}`, `--run-directory=${lab.folder}/lb`];
  const args = [`--kubeconfig=${insideKubeconfig}`, '--runtime=process', ...place];
  loadBalancer.spawn(program, args, { logName: 'switchyard-lb' });
  stack.move();
  return found;
}

beforeAll(async () => {
  site = await openSite();
});
afterAll(() => site?.[Symbol.asyncDispose]());

/** Names of all health-check profiles. */
async function profiles(): Promise<readonly string[]> {
  const { stdout } = await site.cluster.lab.loadBalancer.run(program, ['profiles', '--output=json']);
  return (JSON.parse(stdout) as readonly { readonly name: string }[]).map(({ name }) => name);
}

/** Sets the load balancer's annotations, all others removed, and waits until it runs so. */
async function configure(annotations: Readonly<Record<string, string>>, message: RegExp): Promise<void> {
  const names = ['fast-drain', 'health-check-profile', 'health-check-interval', 'health-check-fall'];
  const all = Object.fromEntries(names.map((name) => [`${prefix}${name}`, annotations[name] ?? null]));
  const body = { metadata: { annotations: all } };
  const { api } = site.cluster;
  await api.patch(apiResources.services, named, { kind: 'merge', body } as never, signal);
  await until(async () => {
    const { status } = await api.get(apiResources.services, named, signal);
    return status?.conditions?.some((one) => one.type === `${prefix}Ready` && message.test(one.message)) ?? false;
  });
}

/** Restarts the application under load. Returns the lost requests, and how long each pod waited at the gate, in milliseconds. */
async function rollOut(rollouts: number) {
  const address = site.cluster.lab.loadBalancer.addresses.IPv4 ?? '';
  const request = { protocol: 'http', address, port: 80, path: '/', timeout: 2000 } as const;
  await until(async () => (await site.outside.probe(request)).status === 'answered');
  const before = (await site.gateLog()).length;
  const load = await openLoad([{ name: 'load balancer', from: site.outside, request }], 20, async () => {
    for (let round = 0; round < rollouts; round++) await site.restart();
  });
  const lines = (await site.gateLog()).slice(before);
  const waits = lines.map((line) => Number(/"safe to stop".* waitedMs=(\d+) nodes=3 TCP=0/.exec(line)?.[1]));
  return { ...load, waits };
}

test('with fast drain nothing is lost, with any health-check profile', { timeout: 300_000 }, async () => {
  const names = await profiles();
  expect(names).toHaveLength(10);
  for (const name of names) {
    await configure({ 'fast-drain': 'true', 'health-check-profile': name }, new RegExp(`^${name}: .*fast drain`));
    const { lost, count, waits } = await rollOut(2);
    expect({ name, lost }).toEqual({ name, lost: [] });
    expect(count).toBeGreaterThan(50);
    expect(waits.filter((wait) => wait > 0)).toHaveLength(2);
  }
});

test.each<[title: string, annotations: Readonly<Record<string, string>>, message: RegExp, shortest: number]>([
  ['after one failing check', {}, /^switchyard: (?!.*fast drain)/, 0],
  [
    'after five, which take 2.0 s to 2.5 s',
    { 'health-check-interval': '500ms', 'health-check-fall': '5' },
    /^switchyard, changed: (?!.*fast drain)/,
    1900,
  ],
])(
  'without fast drain the gate opens when the load balancer has left the node: %s',
  async (_, changes, message, shortest) => {
    await configure({ 'health-check-profile': 'switchyard', ...changes }, message);
    const { lost, count, waits } = await rollOut(2);
    expect(lost).toEqual([]);
    expect(count).toBeGreaterThan(50);
    expect(waits.filter((wait) => wait > shortest)).toHaveLength(2);
  },
);
