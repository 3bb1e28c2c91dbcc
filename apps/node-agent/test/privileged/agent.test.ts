import { cp, readFile, readlink, rm, symlink } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type Prober,
  type ProbeResult,
  startCluster,
  waitForAgents,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { rulesetOf } from './ruleset.ts';

const program = fileURLToPath(new URL('../../bin/switchyard-agent', import.meta.url));
const bundle = fileURLToPath(new URL('../../dist-bundle', import.meta.url));
const { signal } = new AbortController();

let cluster: LabCluster;
let node: LabNode;
let client: Prober;
let agent: LabProcess;
/** Ports the API server chose for the Service. */
let nodePort: number;
let healthCheckNodePort: number;

beforeAll(async () => {
  cluster = await startCluster({ name: 'agent', nodes: 1, ipFamilies }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  client = await createProber(cluster.lab.client, signal);
  const { deployment, service } = zeroapp({ port: 8080, delayShutdown: 0, terminationGracePeriod: 1 });
  const spec = { ...service.spec, ipFamilyPolicy: 'PreferDualStack' as const };
  const created = await cluster.api.create(apiResources.services, { ...service, spec }, signal);
  nodePort = created.spec?.ports?.[0]?.nodePort ?? 0;
  healthCheckNodePort = created.spec?.healthCheckNodePort ?? 0;
  agent = cluster.startAgent(node, { args: ['-v=4'] });
  await waitForAgents(cluster.lab, [agent], signal);
  await cluster.api.create(apiResources.deployments, deployment, signal);
  for (const family of ipFamilies) {
    await until(async () => (await ask(nodePort, '/', family)).status === 'answered');
  }
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

function ask(port: number, path = '/', family: 'IPv4' | 'IPv6' = 'IPv4'): Promise<ProbeResult> {
  return client.probe({ protocol: 'http', address: node.addresses[family] ?? '', port, path });
}

function ruleset(): Promise<string> {
  return rulesetOf(node);
}

async function scale(replicas: number): Promise<void> {
  const body = { kind: 'merge', body: { spec: { replicas } } } as const;
  await cluster.api.patch(apiResources.deployments, { name: 'zeroapp' }, body, signal);
}

describe('a running agent', () => {
  test('is the process that was started, on the Node of the checkout, with small memory settings', async () => {
    expect(await readlink(`/proc/${agent.pid}/exe`)).toMatch(/\/node_modules\/node-linux-\w+\/bin\/node$/);
    const command = (await readFile(`/proc/${agent.pid}/cmdline`, 'utf8')).split('\0');
    expect(command[1]).toBe('--max-semi-space-size=1');
    expect(await readFile(`/proc/${agent.pid}/environ`, 'utf8')).toContain('MALLOC_ARENA_MAX=1');
  });

  test.each(ipFamilies)('sends NodePort connections of %s to the pod', async (family) => {
    expect(await ask(nodePort, '/', family)).toMatchObject({ status: 'answered', node: node.nodeName });
  });

  test.each(['/healthz', '/livez'])('answers %s', async (path) => {
    for (const family of ipFamilies) {
      const answer = await ask(10_256, path, family);
      expect(answer).toMatchObject({ status: 'answered', httpStatus: 200 });
    }
  });

  test('answers the healthCheckNodePort as kube-proxy, and follows the pods', async () => {
    const answer = await ask(healthCheckNodePort, '/any/path');
    expect(answer).toMatchObject({
      httpStatus: 200,
      headers: { 'content-type': 'application/json', 'x-load-balancing-endpoint-weight': '1' },
    });
    expect(JSON.parse(answer.status === 'answered' ? answer.body : '')).toEqual({
      service: { namespace: 'default', name: 'zeroapp' },
      localEndpoints: 1,
      serviceProxyHealthy: true,
    });
    await scale(0);
    await until(async () => (await statusOf(healthCheckNodePort)) === 503);
    await scale(1);
    await until(async () => (await statusOf(healthCheckNodePort)) === 200);
  });

  test('logs each apply with the time and its figures, and the services at debug', async () => {
    const lines = await readLog(agent);
    const applied = lines.filter((line) => line.msg === 'applied');
    expect(applied.length).toBeGreaterThanOrEqual(2);
    for (const line of applied) {
      expect(line).toMatchObject({
        level: 'info',
        generation: expect.any(Number) as number,
        ipFamily: expect.stringMatching(/^IPv[46]$/) as string,
        writes: expect.any(Number) as number,
        durationMs: expect.any(Number) as number,
      });
      expect(Math.abs(Date.now() - line.time)).toBeLessThan(120_000);
    }
    const details = lines.filter((line) => line.msg === 'applied services');
    expect(details.some((line) => JSON.stringify(line).includes('default/zeroapp:http/TCP'))).toBe(true);
    expect(lines.filter((line) => line.level === 'text' || line.level === 'error')).toEqual([]);
  });

  test('needs less than 80 MB when idle, after the garbage of the start was collected', async () => {
    const rss = async (): Promise<number> => {
      const status = await readFile(`/proc/${agent.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
    };
    expect(await rss()).toBeGreaterThan(20);
    await until(async () => (await rss()) < 80);
  });
});

describe('stopping and starting again', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it with 0 and leaves forwarding in place', async (name) => {
    const before = await ruleset();
    process.kill(agent.pid, name);
    expect(await agent.ended).toBe(0);
    expect(await ruleset()).toBe(before);
    expect(await ask(nodePort)).toMatchObject({ status: 'answered' });
    expect(await ask(10_256, '/livez')).toMatchObject({ status: 'refused' });
    agent = cluster.startAgent(node, { args: ['-v=4'] });
    await waitForAgents(cluster.lab, [agent], signal);
  });

  test('the next one adopts what is there and writes nothing', async () => {
    const [first, second] = (await readLog(agent)).filter((line) => line.msg === 'applied');
    expect([first, second]).toMatchObject([
      { scope: 'full', writes: 0 },
      { scope: 'full', writes: 0 },
    ]);
  });
});

describe('one-shot commands, through a symlink and from another folder', () => {
  test('--switchyard-dump prints what is in the kernel', async () => {
    const link = `${cluster.lab.folder}/agent-link`;
    await symlink(program, link);
    const result = await node.run('sh', ['-c', 'cd / && exec "$0" --switchyard-dump', link]);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(result.stdout).toContain(String(nodePort));
    expect(result.stdout).toMatch(
      /^# IPv4: rules last known to be right \d+ s ago\n[^#]+^# IPv6: rules last known to be right \d+ s ago\n/m,
    );
  });

  test('--switchyard-dump ends quietly when its reader has gone, as behind head', async () => {
    const result = await node.run('sh', ['-c', '"$0" --switchyard-dump | true', program]);
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('--cleanup removes it, and only it', async () => {
    await agent.stop();
    await node.run('nft', ['add', 'table', 'inet', 'foreign']);
    const result = await node.run(program, ['--cleanup']);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(await ruleset()).toBe('table inet foreign {\n}\n');
  });
});

describe('what it refuses, with one line and exit code 1', () => {
  // The machine is shared: its settings are not the network namespace's own.
  const careful = ['--proxy-mode=nftables', '--conntrack-max-per-core=0', '--oom-score-adj=0'];
  const anonymous = ['--bounding-set=-net_admin,-sys_admin', program];

  test.each<readonly [string, string, readonly string[], RegExp]>([
    ['an unknown flag', program, ['--no-such-flag'], /^unknown flag --no-such-flag; see --help$/],
    ['an argument', program, ['start'], /^unexpected argument "start"; see --help$/],
    [
      'a bad CIDR',
      program,
      ['--proxy-mode=nftables', '--cluster-cidr=10.0.0.0/99'],
      /^KubeProxyConfiguration\.clusterCIDR \(--cluster-cidr\): .* is not a CIDR/,
    ],
    [
      'another mode',
      program,
      ['--proxy-mode=ipvs'],
      /^KubeProxyConfiguration\.mode \(--proxy-mode\): Invalid value: "ipvs": this agent has no ipvs mode/,
    ],
    [
      'an unreadable kubeconfig',
      program,
      [...careful, '--kubeconfig=/no/such/file'],
      /^cannot read the kubeconfig \/no\/such\/file/,
    ],
    [
      'few file descriptors',
      'sh',
      ['-c', 'ulimit -n 20 && exec "$0"', program],
      /^the limit of open files is 20, at least 64/,
    ],
    [
      'few file descriptors, without its launcher',
      'sh',
      ['-c', 'ulimit -n 32 && exec "$0" "$1"', process.execPath, `${bundle}/main.mjs`],
      /^the limit of open files is 32, at least 64 are needed: raise it/,
    ],
    ['no cluster', program, careful, /^not running in a pod/],
    [
      'missing privileges',
      'setpriv',
      [...anonymous, '--switchyard-dump'],
      /run as root or with CAP_NET_ADMIN; nothing of it took effect$/,
    ],
  ])('%s', async (...row) => {
    const [, file, args, expected] = row;
    const result = await node.run(file, args);
    expect(result).toMatchObject({ exitCode: 1, stdout: '' });
    const lines = result.stderr.trimEnd().split('\n');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^switchyard-agent: /);
    expect(lines[0]?.slice('switchyard-agent: '.length)).toMatch(expected);
  });
});

test('without the native addon it refuses to run, and says what to do', async () => {
  const lame = `${cluster.lab.folder}/without-addon`;
  await cp(bundle, lame, { recursive: true });
  await rm(`${lame}/switchyard_native.node`);
  const dump = (...args: readonly string[]) =>
    node.run(process.execPath, [`${lame}/main.mjs`, '--switchyard-dump', ...args]);
  expect(await dump()).toEqual({
    exitCode: 1,
    stdout: '',
    stderr:
      'switchyard-agent: this host cannot run --proxy-mode nftables: the native addon switchyard_native.node is missing: ' +
      'build it with ./dev build, or use a build that has it\n',
  });
});

async function statusOf(port: number): Promise<number | undefined> {
  const answer = await ask(port);
  return answer.status === 'answered' ? answer.httpStatus : undefined;
}
