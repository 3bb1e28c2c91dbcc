import { type IpFamily, ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { kubeProxySave } from '@switchyard/netfilter/testing';
import {
  type LabCluster,
  type LabCommandResult,
  type LabNode,
  type LabProcess,
  startCluster,
  waitForAgents,
} from '@switchyard/lab';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { kubeProxyTable } from './kube-proxy-table.ts';

const program = fileURLToPath(new URL('../../bin/switchyard-agent', import.meta.url));
const { signal } = new AbortController();
let cluster: LabCluster;
let node: LabNode;
let other: LabNode;

beforeAll(async () => {
  cluster = await startCluster({ name: 'cleanup', nodes: 2, ipFamilies }, signal);
  [node, other] = cluster.lab.nodes as [LabNode, LabNode];
  const spec = { ipFamilyPolicy: 'PreferDualStack' as const, ports: [{ port: 80 }] };
  await cluster.api.create(apiResources.services, { metadata: { name: 'cart', namespace: 'default' }, spec }, signal);
});

afterAll(() => cluster[Symbol.asyncDispose]());

const agent = (...args: readonly string[]): Promise<LabCommandResult> => node.run(program, args);

/** Waits until both families are in the kernel. */
function forwarding(process: LabProcess): Promise<void> {
  return until(async () => (await readLog(process)).filter(({ msg }) => msg === 'applied').length >= 2);
}

async function run(file: string, args: readonly string[], stdin = ''): Promise<string> {
  const result = await node.run(file, args, { stdin });
  expect(result.exitCode, `${file} ${args.join(' ')}: ${result.stderr}`).toBe(0);
  return result.stdout;
}

const programs: Readonly<Record<IpFamily, string>> = { IPv4: 'iptables', IPv6: 'ip6tables' };

async function loadKubeProxy(variants: readonly string[]): Promise<void> {
  for (const ipFamily of ipFamilies) {
    const [clusterIp, endpoint] =
      ipFamily === 'IPv4' ? ['10.96.9.9', '10.244.9.9:80'] : ['fd00:10:96::99', '[fd00::9]:80'];
    const left = [{ ipFamily, name: 'x', clusterIp, port: 80, nodePort: 30999, protocol: 'tcp' as const, endpoint }];
    for (const variant of variants) await run(`${programs[ipFamily]}-${variant}-restore`, [], kubeProxySave(left));
    await run('nft', ['-f', '-'], kubeProxyTable(left));
  }
}

describe('a second agent on a node', () => {
  test('ends with 1 and names the first; on another node it starts; after kill -9 of the first the next starts at once', async () => {
    const first = cluster.startAgent(node, { env: { POD_NAME: 'switchyard-first', POD_NAMESPACE: 'kube-system' } });
    const elsewhere = cluster.startAgent(other);
    await waitForAgents(cluster.lab, [first, elsewhere], signal);
    const second = cluster.startAgent(node);
    expect(await second.ended).toBe(1);
    const line = (await readLog(second)).find(({ level }) => level === 'text');
    expect(line?.msg).toMatch(
      new RegExp(
        `^switchyard-agent: another agent runs on this node: pid ${first.pid} in pod kube-system/switchyard-first on \\S+, ` +
          `version \\S+, for Node ${node.nodeName}, since 20\\S+Z; two agents would undo each other's rules: stop it first$`,
      ),
    );
    process.kill(first.pid, 'SIGKILL');
    await first.ended;
    const third = cluster.startAgent(node);
    await waitForAgents(cluster.lab, [third, elsewhere], signal);
    await third.stop();
    await elsewhere.stop();
  });

  test('is refused before it touches anything, and so is a clean-up', async () => {
    const first = cluster.startAgent(node);
    await forwarding(first);
    const result = await agent('--cleanup');
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/^switchyard-agent: an agent runs on this node: pid \d+ .*; stop it first\n$/);
    expect(await run('nft', ['list', 'tables'])).toBe('table inet switchyard\n');
    await first.stop();
  });
});

describe('the clean-up', () => {
  test('removes what the agent left, says so, and does it again without complaint', async () => {
    const left = cluster.startAgent(node);
    await forwarding(left);
    await left.stop();
    expect(await run('nft', ['list', 'tables'])).toBe('table inet switchyard\n');
    const result = await agent('--cleanup');
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    expect(result.stdout).toBe(
      'removed: everything of IPv4 in nftables table inet switchyard\nremoved: nftables table inet switchyard\n',
    );
    expect(await run('nft', ['list', 'tables'])).toBe('');
    expect(await agent('--cleanup')).toMatchObject({ exitCode: 0, stdout: 'nothing to remove\n', stderr: '' });
  });

  test('is refused beside a kube-proxy that has not written its rules, and done when it has', async () => {
    const left = cluster.startAgent(node);
    await forwarding(left);
    await left.stop();
    const metrics = 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds 1.7e+09\\n';
    for (const [page, exitCode, tables] of [
      [metrics, 1, 'table inet switchyard\n'],
      [`${metrics}kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7e+09\\n`, 0, ''],
    ] as const) {
      const serve = `require("http").createServer((_, to) => to.end('${page}')).listen(10249, "127.0.0.1", () => console.log("up"))`;
      const kubeProxy = node.spawn(process.execPath, ['-e', serve]);
      await until(async () => readFileSync(kubeProxy.logFile, 'utf8').includes('up'));
      expect(await agent('--cleanup')).toMatchObject({
        exitCode,
        stderr:
          exitCode === 0 ? '' : expect.stringMatching(/the kube-proxy on this node has not written its rules yet/),
      });
      expect(await run('nft', ['list', 'tables'])).toBe(tables);
      await kubeProxy.stop();
    }
  });

  test("leaves kube-proxy's rules alone unless it is told to", async () => {
    await loadKubeProxy(['nft', 'legacy']);
    expect((await agent('--cleanup')).stdout).toBe('nothing to remove\n');
    expect(await run('iptables-nft-save', [])).toContain(':KUBE-SERVICES');
    const result = await agent('--cleanup', '--switchyard-cleanup-kube-proxy');
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    const lines = result.stdout.trim().split('\n');
    for (const name of ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy']) {
      expect(lines).toContain(`removed: ${name}, table nat: 8 chains, 12 rules, 3 jumps to them`);
      expect(lines).toContain(`removed: ${name}, table filter: 6 chains, 3 rules, 9 jumps to them`);
      expect(lines).toContain(`removed: ${name}, table mangle: 1 chain, 0 rules, 0 jumps to them`);
    }
    expect(lines).toContain('removed: nftables table ip kube-proxy');
    expect(lines).toContain('removed: nftables table ip6 kube-proxy');
    for (const name of ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy']) {
      const saved = await run(`${name}-save`, []);
      expect(saved.match(/^:KUBE-\S+/gm)?.sort()).toEqual([
        ':KUBE-FIREWALL',
        ':KUBE-IPTABLES-HINT',
        ':KUBE-KUBELET-CANARY',
        ':KUBE-KUBELET-CANARY',
        ':KUBE-KUBELET-CANARY',
        ':KUBE-MARK-DROP',
      ]);
      expect(saved).toContain('-j SITE-RULES');
    }
    expect((await agent('--cleanup', '--switchyard-cleanup-kube-proxy')).stdout).toBe('nothing to remove\n');
  });

  test('says what it cannot do, does the rest, and ends with 1', async () => {
    await loadKubeProxy(['nft']);
    // iptables refuses a table with rules that it cannot express.
    await run(
      'nft',
      ['-f', '-'],
      'add chain ip nat site\nadd rule ip nat site meta l4proto tcp ct count over 3 drop\n',
    );
    const result = await agent('--cleanup', '--switchyard-cleanup-kube-proxy');
    expect(result.stdout).toContain('removed: nftables table ip kube-proxy\n');
    expect(result.stdout).toContain('removed: ip6tables-nft, table nat');
    expect(result.stdout).toMatch(
      /^failed: cannot remove 8 chains with kube-proxy's names from table nat of iptables-nft: .*\n$/m,
    );
    expect(result).toMatchObject({
      exitCode: 1,
      stderr: 'switchyard-agent: the clean-up is not complete: 1 of its parts failed, see above; it can be repeated\n',
    });
    await run('nft', ['delete', 'chain', 'ip', 'nat', 'site']);
    expect(await agent('--cleanup', '--switchyard-cleanup-kube-proxy')).toMatchObject({ exitCode: 0 });
    expect(await run('iptables-nft-save', [])).not.toContain(':KUBE-SERVICES');
  });
});
