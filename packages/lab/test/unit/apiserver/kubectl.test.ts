import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Harness, startHarness } from './harness.ts';

// The machine's own kubectl against the server. Where there is none, every test here is skipped and counted. Debian's
// kubectl 1.20 does all but the rows marked with a newer version: it lacks a flag, or wants OpenAPI v2 as protobuf.

const kubectlPath = process.env['KUBECTL'] ?? 'kubectl';
const probe = spawnSync(kubectlPath, ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
const hasKubectl = probe.status === 0;
const minor = hasKubectl ? Number.parseInt(JSON.parse(probe.stdout).clientVersion.minor, 10) : 0;
const title = hasKubectl ? `kubectl 1.${minor}` : 'kubectl (skipped: no kubectl in PATH; install kubernetes-client)';

interface Running {
  readonly output: string;
  readonly errors: string;
  readonly ended: Promise<number | null>;
  readonly stop: () => void;
}

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: zeroapp}
spec:
  replicas: 1
  selector: {matchLabels: {app: zeroapp}}
  template:
    metadata: {labels: {app: zeroapp}}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - name: app
        image: example.com/zeroapp:1
        env: [{name: MODE, value: a}, {name: DELAY, value: "30"}]
        ports: [{name: http, containerPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: zeroapp}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: zeroapp}
  ports: [{name: http, port: 8000, targetPort: http}, {name: admin, port: 8001}]
`;

describe.skipIf(!hasKubectl)(title, { timeout: 60_000 }, () => {
  let api: Harness;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'swy-kubectl-'));
    api = await startHarness();
    writeFileSync(join(folder, 'config'), api.server.kubeconfig(api.url));
    await api.send('POST', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases', {
      metadata: { name: 'lb' },
      spec: { holderIdentity: 'a', leaseDurationSeconds: 15 },
    });
    await api.send('POST', '/api/v1/nodes', {
      metadata: { name: 'node1', labels: { 'topology.kubernetes.io/zone': 'z1' } },
      spec: { podCIDR: '10.244.1.0/24' },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        addresses: [{ type: 'InternalIP', address: '172.18.0.11' }],
      },
    });
  });

  afterAll(async () => {
    await api[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  /** Starts kubectl; `output` grows while it runs. */
  function start(line: string | readonly string[], stdin?: string): Running {
    const args = typeof line === 'string' ? line.split(' ') : line;
    const editor = 'sed -i s/sessionAffinity:.None/sessionAffinity:\\ ClientIP/';
    const env = { ...process.env, KUBECONFIG: join(folder, 'config'), HOME: folder, KUBE_EDITOR: editor };
    const child = spawn(kubectlPath, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    const running = { output: '', errors: '', stop: () => void child.kill() };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (running.output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (running.errors += text));
    child.stdin.end(stdin);
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    return Object.assign(running, { ended });
  }

  /** Standard output, or standard error after `!` when the exit code is not 0. */
  async function kubectl(line: string | readonly string[], stdin?: string): Promise<string> {
    const running = start(line, stdin);
    return (await running.ended) === 0 ? running.output : `!${running.errors}`;
  }

  /** Waits until `isDone`, at most 20 s. */
  async function until(isDone: () => boolean | Promise<boolean>): Promise<void> {
    for (let round = 0; !(await isDone()); round++) {
      if (round > 1_000) throw new Error('waited 20 s in vain');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  test('apply creates, then changes nothing, then merges what changed', async () => {
    expect(await kubectl('apply -f -', manifest)).toBe('deployment.apps/zeroapp created\nservice/zeroapp created\n');
    expect(await kubectl('apply -f -', manifest)).toBe(
      'deployment.apps/zeroapp unchanged\nservice/zeroapp unchanged\n',
    );
    const before = await kubectl('get svc zeroapp -o jsonpath={.spec.ports[?(@.name=="admin")].nodePort}');
    const changed = manifest
      .replace('{name: MODE, value: a}, ', '')
      .replace('name: http, port: 8000', 'name: http, port: 80');
    expect(await kubectl('apply -f -', changed)).toBe(
      'deployment.apps/zeroapp configured\nservice/zeroapp configured\n',
    );
    const env = 'get deploy zeroapp -o jsonpath={.spec.template.spec.containers[0].env[*].name}';
    expect(await kubectl(env)).toBe('DELAY');
    expect(await kubectl('get svc zeroapp -o jsonpath={.spec.ports[*].port}')).toBe('80 8001');
    expect(await kubectl('get svc zeroapp -o jsonpath={.spec.ports[?(@.name=="admin")].nodePort}')).toBe(before);
  });

  test.each([
    [
      'get svc zeroapp',
      /^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\nzeroapp +LoadBalancer +10\.\S+ +<pending> +80:3\d{4}\/TCP,8001:3\d{4}\/TCP +\d+s\n$/,
    ],
    ['get deploy -o wide', /zeroapp +0\/1 +0 +0 +\d+s +app +example\.com\/zeroapp:1 +app=zeroapp\n$/],
    ['get nodes', /^NAME +STATUS +ROLES +AGE +VERSION\nnode1 +Ready +<none> /],
    ['get ns', /default +Active/],
    ['get svc,deploy -o name', /^service\/zeroapp\ndeployment.apps\/zeroapp\n$/],
    ['get svc -A -l nope=nope', /^$/],
    ['get leases -n kube-system', /^NAME +HOLDER +AGE\nlb +a +\d+s\n$/],
    ['get servicecidr', /kubernetes +10\.96\.0\.0\/12/],
    ['get pods --field-selector spec.nodeName=node1', /^$/],
    ['get svc nope', /^!Error from server \(NotFound\): services "nope" not found\n$/],
    ['get nothings', /^!error: the server doesn't have a resource type "nothings"\n$/],
    [
      'api-versions',
      /^apps\/v1\ncoordination.k8s.io\/v1\ndiscovery.k8s.io\/v1\nevents.k8s.io\/v1\nnetworking.k8s.io\/v1\nv1\n$/,
    ],
    ['version', /Server Version: .*v1\.36\.2/],
    ['label svc zeroapp tier=web', /^service\/zeroapp labeled\n$/],
    ['annotate svc zeroapp note=1', /^service\/zeroapp annotated\n$/],
    ['annotate --overwrite svc zeroapp note=2', /^service\/zeroapp annotated\n$/],
    ['label svc zeroapp tier-', /^service\/zeroapp (un)?labeled\n$/],
    ['edit svc zeroapp', /^service\/zeroapp edited\n$/],
    ['get svc zeroapp -o jsonpath={.spec.sessionAffinity}', /^ClientIP$/],
    ['scale deploy zeroapp --replicas=3', /^deployment.apps\/zeroapp scaled\n$/],
    ['scale deploy zeroapp --current-replicas=7 --replicas=1', /^!error: Expected replicas to be 7, was 3\n$/],
    ['set image deploy/zeroapp app=example.com/zeroapp:2', /^deployment.apps\/zeroapp image updated\n$/],
    ['rollout restart deploy/zeroapp', /^deployment.apps\/zeroapp restarted\n$/],
    ['rollout pause deploy/zeroapp', /^deployment.apps\/zeroapp paused\n$/],
    ['rollout resume deploy/zeroapp', /^deployment.apps\/zeroapp resumed\n$/],
    ['get deploy zeroapp -o jsonpath={.metadata.generation}', /^7$/],
    ['cordon node1', /^node\/node1 cordoned\n$/],
    ['get node node1', /Ready,SchedulingDisabled/],
    ['uncordon node1', /^node\/node1 uncordoned\n$/],
    ['taint node node1 example.com/x=y:NoSchedule', /^node\/node1 tainted\n$/],
    ['taint node node1 example.com/x-', /^node\/node1 untainted\n$/],
    ['describe svc zeroapp', /HealthCheck NodePort: +3\d{4}\n/],
    ['get --raw /readyz', /^ok$/],
    ['create namespace team', /^namespace\/team created\n$/],
    ['-n team create service nodeport np --tcp=80:8080 --node-port=30080', /^service\/np created\n$/],
    ['-n team create service clusterip hd --clusterip=None --tcp=80', /^service\/hd created\n$/],
    ['-n team create service externalname en --external-name x.example.com', /^service\/en created\n$/],
    ['-n team create deployment d --image=example.com/d:1 --replicas=2 --port=80', /^deployment.apps\/d created\n$/],
    ['-n team expose deployment d --port=80', /^service\/d exposed\n$/],
    ['-n team get deploy d', /d +0\/2 /],
    [
      '-n team get svc',
      /d +ClusterIP[^]*en +ExternalName +<none> +x.example.com +<none>[^]*hd +ClusterIP +None[^]*np +NodePort/,
    ],
    ['delete ns team --timeout=10s', /^namespace "team" deleted\n$/],
  ])('%s', async (line, output) => {
    expect(await kubectl(line)).toMatch(output);
  });

  test.skipIf(minor < 25).each([
    ['explain service.spec.type', /FIELD: type <string>/],
    ['wait svc/zeroapp --for=jsonpath={.spec.type}=LoadBalancer --timeout=5s', /^service\/zeroapp condition met\n$/],
    ['delete svc zeroapp --dry-run=server', /^service "zeroapp" deleted \(server dry run\)\n$/],
    [['apply', '-f', '-', '--dry-run=server'], /service\/zeroapp (configured|created) \(server dry run\)\n$/, manifest],
  ])('(kubectl 1.25 or newer) %s', async (line, output, stdin?: string) => {
    expect(await kubectl(line, stdin)).toMatch(output);
  });

  test.each([
    ['delete deploy,svc zeroapp', /^deployment.apps "zeroapp" deleted\nservice "zeroapp" deleted\n$/],
    ['delete svc zeroapp --ignore-not-found', /^$/],
  ])('%s', async (line, output) => {
    expect(await kubectl(line)).toMatch(output);
  });

  test('the four kinds of patch', async () => {
    const service =
      'apiVersion: v1\nkind: Service\nmetadata: {name: c1}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n';
    expect(await kubectl('create -f -', service)).toBe('service/c1 created\n');
    expect(await kubectl('create -f -', service)).toContain('services "c1" already exists');
    const patch = (...args: string[]): Promise<string> => kubectl(['patch', 'svc', 'c1', ...args]);
    expect(await patch('-p', '{"spec":{"ports":[{"port":81,"name":"b"},{"port":80,"name":"a"}]}}')).toBe(
      'service/c1 patched\n',
    );
    expect(await patch('--type=merge', '-p', '{"spec":{"type":"ClusterIP"}}')).toBe('service/c1 patched (no change)\n');
    expect(await patch('--type=json', '-p', '[{"op":"test","path":"/spec/type","value":"NodePort"}]')).toMatch(
      /^!The request is invalid/,
    );
    expect(await patch('--type=merge', '-p', '{"spec":{"clusterIP":"10.96.10.9"}}')).toBe(
      '!The Service "c1" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.10.9"]: may not change once set\n',
    );
  });

  test.each([
    [
      'a wrong type',
      '{ports: [{port: {a: 1}}]}',
      /cannot unmarshal object into Go struct field ServicePort.spec.ports.port of type int32/,
    ],
    ['wrong values', '{type: Nope, ports: [{port: 70000}]}', /spec.type: Unsupported value: "Nope"/],
  ])('create refuses %s', async (_what, spec, message) => {
    const text = `apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: ${spec}\n`;
    expect(await kubectl('create -f -', text)).toMatch(message);
  });

  test.skipIf(minor < 25)(
    '(kubectl 1.25 or newer) create refuses an unknown field; a status patch reaches the status',
    async () => {
      const text =
        'apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {prots: [{port: 80}], ports: [{port: 80}]}\n';
      expect(await kubectl('create -f -', text)).toMatch(/strict decoding error: unknown field "spec.prots"/);
      const ingress = '{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.10"}]}}}';
      const args = ['patch', 'svc', 'c1', '--subresource=status', '--type=merge', '-p', ingress];
      expect(await kubectl(args)).toBe('service/c1 patched\n');
      expect(await kubectl('get svc c1 -o jsonpath={.status.loadBalancer.ingress[0].ipMode}')).toBe('VIP');
    },
  );

  test('server-side apply is refused with a clear message', async () => {
    expect(await kubectl('apply --server-side -f -', manifest)).toMatch(/server-side apply is not supported/);
  });

  test('get -w shows changes as they come', async () => {
    const watching = start('get svc -w --no-headers');
    await until(() => watching.output.includes('c1 '));
    await api.service('seen');
    await api.send('DELETE', '/api/v1/namespaces/default/services/seen');
    await until(() => watching.output.split('\n').filter((line) => line.startsWith('seen ')).length === 2);
    watching.stop();
    await watching.ended;
  });

  test('rollout status follows the status that a controller writes; wait sees conditions', async () => {
    await kubectl('apply -f -', manifest);
    const path = '/apis/apps/v1/namespaces/default/deployments/zeroapp';
    const following = kubectl('rollout status deploy/zeroapp --timeout=20s');
    const waiting = kubectl('wait deploy/zeroapp --for=condition=Available --timeout=20s');
    const condition = { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable' };
    const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    await api.patch(`${path}/status`, 'merge', {
      status: { observedGeneration: 1, ...counts, conditions: [condition] },
    });
    expect(await following).toContain('deployment "zeroapp" successfully rolled out');
    expect(await waiting).toBe('deployment.apps/zeroapp condition met\n');
  });

  test('delete pod waits for the grace period; --force does not', async () => {
    const pod = (name: string): string =>
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}"},"spec":{"nodeName":"node1","containers":[{"name":"c","image":"x"}]}}`;
    expect(await kubectl('create -f -', pod('p1'))).toBe('pod/p1 created\n');
    const deleting = kubectl('delete pod p1');
    const pods = '/api/v1/namespaces/default/pods';
    await until(async () => (await api.get(`${pods}/p1`)).body.metadata.deletionTimestamp !== undefined);
    expect(await kubectl('get pod p1 --no-headers')).toMatch(/p1 +0\/1 +Terminating/);
    await api.send('DELETE', `${pods}/p1`, { gracePeriodSeconds: 0 });
    expect(await deleting).toBe('pod "p1" deleted\n');
    await kubectl('create -f -', pod('p2'));
    expect(await kubectl('delete pod p2 --force')).toBe('pod "p2" force deleted\n');
  });
});
