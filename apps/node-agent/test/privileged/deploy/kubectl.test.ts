import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startApiServer } from '@switchyard/lab';
import { beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { ConfigFolder } from '../../../src/config/testing/config-folder.ts';
import { guideCommands, kindCommands } from './guide.ts';
import { debianKubectlFolder, shell } from './kubectl.ts';
import { objectOf, renderOverlay } from './rendered.ts';

// The real kubectl puts the manifests into an API server: the one in PATH, and Debian's, which is the oldest there is.

const kubeadm = fileURLToPath(new URL('kubeadm.yaml', import.meta.url));
const path = process.env['PATH'] ?? '';
let debian: string;

beforeAll(async () => {
  debian = await debianKubectlFolder();
});

/** A cluster of API objects only, and kubectl for it. */
async function startBench(kubectl: 'in PATH' | "Debian's") {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startApiServer({ hasAddOnKinds: true }));
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  const folder = await mkdtemp(join(tmpdir(), 'swy-kubectl-'));
  stack.defer(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'kubeconfig'), server.kubeconfig(url));
  const env = {
    KUBECONFIG: join(folder, 'kubeconfig'),
    HOME: folder,
    PATH: kubectl === 'in PATH' ? path : `${debian}:${path}`,
  };
  const owned = stack.move();
  return {
    run: async (commands: string): Promise<string> => {
      const { exitCode, output } = await shell(commands, env);
      return exitCode === 0 ? output : `!${exitCode} ${output}`;
    },
    get: async (what: string) => JSON.parse((await shell(`kubectl -n kube-system get ${what} -o json`, env)).output),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

describe.each(['in PATH', "Debian's"] as const)('kubectl %s', (kubectl) => {
  test.each(['nftables', 'iptables', 'custom-settings', 'standalone'])(
    'applies overlay %s, and again without a change',
    async (overlay) => {
      await using bench = await startBench(kubectl);
      const apply = `kubectl apply -k deploy/kustomize/overlays/${overlay}`;
      const objects = await renderOverlay(overlay);
      const first = await bench.run(apply);
      expect(first.match(/ created$/gm)).toHaveLength(objects.length);
      expect(first).toContain('daemonset.apps/switchyard created');
      const again = await bench.run(apply);
      expect(again.match(/ unchanged$/gm)).toHaveLength(objects.length);
      const stored = await bench.get('ds/switchyard');
      expect(stored.spec.template.spec).toMatchObject(objectOf(objects, 'DaemonSet').spec.template.spec);
      expect(await bench.run('kubectl -n kube-system get ds switchyard --no-headers')).toMatch(/^switchyard +0 +0 /);
      expect(await bench.run(`kubectl delete -k deploy/kustomize/overlays/${overlay}`)).toContain(
        '"switchyard" deleted',
      );
    },
  );

  test("overlay replace-kubeadm changes the image of kubeadm's DaemonSet, adds our readiness probe, and nothing else", async () => {
    await using bench = await startBench(kubectl);
    await bench.run(`kubectl create -f ${kubeadm}`);
    const before = await bench.get('ds/kube-proxy');
    expect(await bench.run('kubectl apply -k deploy/kustomize/overlays/replace-kubeadm')).toContain(
      'daemonset.apps/kube-proxy configured',
    );
    const after = await bench.get('ds/kube-proxy');
    expect(after.spec.template.spec.containers[0].image).toBe('switchyard/agent-iptables:0.1.0');
    const [ours] = after.spec.template.spec.containers;
    expect(ours.readinessProbe.httpGet).toMatchObject({ path: '/healthz', port: 10_256 });
    ours.image = before.spec.template.spec.containers[0].image;
    delete ours.readinessProbe;
    expect(after.spec).toEqual(before.spec);
  });

  test('the guide’s patches are what overlay replace-kubeadm does', async () => {
    await using bench = await startBench(kubectl);
    await bench.run(`kubectl create -f ${kubeadm}`);
    const templateAfter = async (command: string): Promise<unknown> => {
      await bench.run(command);
      return (await bench.get('ds/kube-proxy')).spec.template;
    };
    const [patched = ''] = await guideCommands('swap-iptables');
    const byPatch = await templateAfter(patched);
    await bench.run(`kubectl replace --force -f ${kubeadm}`);
    expect(await templateAfter('kubectl apply -k deploy/kustomize/overlays/replace-kubeadm')).toEqual(byPatch);
    const [, , ofNftables] = await guideCommands('swap');
    expect(ofNftables).toBe(patched.replace('agent-iptables', 'agent-nftables'));
  });

  test('the guide’s commands for one node first do what it says', async () => {
    await using bench = await startBench(kubectl);
    await bench.run(`kubectl create -f ${kubeadm}`);
    const [hold = '', go = ''] = await guideCommands('canary');
    await bench.run(hold);
    expect((await bench.get('ds/kube-proxy')).spec.updateStrategy).toEqual({ type: 'OnDelete' });
    expect(await bench.run(go)).toMatch(/No resources found[^]*daemonset.apps\/kube-proxy patched/);
    expect((await bench.get('ds/kube-proxy')).spec.updateStrategy).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
    });
  });

  test('the guide’s commands for a DaemonSet beside kube-proxy do what it says', async () => {
    await using bench = await startBench(kubectl);
    await bench.run(`kubectl create -f ${kubeadm}`);
    await bench.run(`echo '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node1"}}' | kubectl create -f -`);
    const [commands = ''] = await guideCommands('beside');
    expect(await bench.run(commands)).toContain('node/node1 labeled');
    const { spec } = (await bench.get('ds/kube-proxy')).spec.template;
    const [term] = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
    expect(term.matchExpressions).toEqual([{ key: 'switchyard.dev/proxy', operator: 'DoesNotExist' }]);
    const ours = (await bench.get('ds/switchyard')).spec.template.spec.affinity.podAntiAffinity;
    const [wait] = ours.requiredDuringSchedulingIgnoredDuringExecution;
    expect((await bench.get('ds/kube-proxy')).spec.template.metadata.labels).toMatchObject(
      wait.labelSelector.matchLabels,
    );
  });

  test.each(['nftables', 'iptables', 'ebpf'])(
    'the commands of docs/operate/kind.md install mode %s without Helm',
    async (mode) => {
      await using bench = await startBench(kubectl);
      const [commands = ''] = await kindCommands('kustomize');
      expect(commands).toMatch(/^mode=ebpf /);
      const output = await bench.run(commands.replace('mode=ebpf', `mode=${mode}`));
      expect(output).toContain('daemonset.apps/switchyard created');
      const [container] = (await bench.get('ds/switchyard')).spec.template.spec.containers;
      expect(container.image).toBe(`switchyard/agent-${mode}:0.1.0`);
      const { data } = await bench.get('configmap/kube-proxy');
      expect(data['kubeconfig.conf']).toContain('server: https://kind-control-plane:6443');
      await using files = await ConfigFolder.create();
      const config = await loadConfig(
        [`--config=${await files.write('config.conf', data['config.conf'])}`, '--hostname-override=n1'],
        {},
      );
      expect(config).toMatchObject({
        kind: 'run',
        mode,
        detectLocal: { cidrs: { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/56' } },
        conntrack: { maxPerCore: 0 },
      });
    },
  );

  test("overlay replace-kubeadm is refused where there is no kubeadm's DaemonSet", async () => {
    await using bench = await startBench(kubectl);
    expect(await bench.run('kubectl apply -k deploy/kustomize/overlays/replace-kubeadm')).toMatch(
      /^!1 [^]*`selector` does not match template `labels`/,
    );
  });
});
