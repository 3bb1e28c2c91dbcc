import { appendFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runProgram } from '../../src/program.ts';
import { conformanceCall, upstreamCall, upstreamTests } from '../scripted/kind-script.ts';
import { type ScriptedMachine, scriptMachine } from '../scripted/scripted-machine.ts';
import type { ScriptedCall } from '../scripted/scripted-programs.ts';

const cell = 'nftables-dual-1.37-switchyard';
const cluster = 'swy-e2e-nftables-dual-1-37-switchyard';
let machine: ScriptedMachine;

// A cell is some 60 calls, ten of which start a shell.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

beforeEach(async () => {
  machine = await scriptMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

/** Calls that matter in a test, without those that only inspect the machine. */
async function callsBehind(beginning: string): Promise<readonly string[]> {
  return (await machine.programs.calls()).filter((call) => call.startsWith(beginning));
}

async function outcome(): Promise<{
  readonly status: string;
  readonly because: readonly string[];
  readonly notes: readonly string[];
}> {
  return JSON.parse(await machine.result(cell, 'outcome.json')) as Awaited<ReturnType<typeof outcome>>;
}

describe('a cell in which all goes well', () => {
  test('makes the cluster, tests it, removes it, and calls nothing else', async () => {
    expect(await machine.run([cell])).toBe(0);
    const calls = await machine.programs.calls();
    const order = [
      'kind get clusters',
      'docker run --rm --entrypoint /usr/local/bin/e2e.test registry.k8s.io/conformance:v1.37.0 --list-tests',
      /^node .*image\.ts agent --backend nftables$/,
      /^node .*image\.ts load-balancer$/,
      /^node .*image\.ts kind-lb-controller$/,
      `kind create cluster --name ${cluster} --image kindest/node:v1.37.0@sha256:`,
      /^kind load docker-image switchyard\/agent-nftables:1\.2\.3 .*--name/,
      /^kubectl .* apply -k /,
      /rollout status daemonset\/switchyard/,
      /wait --for=condition=Ready nodes --all/,
      /rollout status deployment\/coredns/,
      `docker run --detach --name ${cluster}-lb-controller`,
      /^node .*conformance\/src\/main\.ts run -v --target cluster/,
      `kind get kubeconfig --internal --name ${cluster}`,
      `docker run --rm --name ${cluster}-upstream`,
      'docker rm --force --volumes controller',
      `kind delete cluster --name ${cluster}`,
      'docker rm --force --volumes lb',
    ];
    let from = 0;
    for (const wanted of order) {
      const found = calls.findIndex(
        (call, index) => index >= from && (typeof wanted === 'string' ? call.startsWith(wanted) : wanted.test(call)),
      );
      expect(found, `${String(wanted)} after ${calls[from - 1] ?? 'the beginning'}`).toBeGreaterThanOrEqual(from);
      from = found + 1;
    }
    expect(await machine.programs.unexpected()).toEqual([]);
    expect(await machine.clusters()).toEqual([]);
    expect(calls.filter((call) => call.startsWith('kind export logs'))).toEqual([]);
    expect(await outcome()).toMatchObject({ status: 'passed', because: [] });
  });

  test('passes to upstream what is in focus and what is skipped, and reports what skipped itself', async () => {
    await machine.run([cell]);
    const [call = ''] = await callsBehind(`docker run --rm --name ${cluster}-upstream`);
    expect(call).toContain(String.raw`--focus=\[sig-network\] Services|\[sig-network\] LoadBalancers|`);
    expect(call).toContain('--skip=should work after restarting kube-proxy');
    expect((await outcome()).notes).toEqual([
      'conformance: 2 passed, 0 failed, 0 skipped, 0 error',
      'upstream: 5 passed, 0 failed, 1 skipped themselves, 1 skipped by e2e/upstream-skips',
      `upstream skipped itself: ${upstreamTests.skipsItself}: skipped - fewer than 3 zones`,
    ]);
  });

  test('leaves its commands with what they said, the cluster of kind and the manifests', async () => {
    await machine.run([cell]);
    const log = await machine.result(cell, 'commands.log');
    expect(log).toContain(`$ kind create cluster --name ${cluster}`);
    expect(log).toMatch(/# exit 0\n {4}swy|serving the cluster/);
    expect(await machine.result(cell, 'kind.yaml')).toContain('kubeProxyMode: none');
    expect(await machine.result(cell, 'manifests/kubeconfig.conf')).toContain(`https://${cluster}-control-plane:6443`);
  });

  test('runs a second time just so', async () => {
    expect(await machine.run([cell])).toBe(0);
    const first = await machine.programs.calls();
    expect(await machine.run([cell])).toBe(0);
    const second = (await machine.programs.calls()).slice(first.length);
    // Calls that inspect the machine run side by side.
    const asked = first.indexOf('kind get clusters');
    expect(second.slice(0, asked).sort()).toEqual(first.slice(0, asked).sort());
    expect(second.slice(asked)).toEqual(first.slice(asked));
    expect(await machine.programs.unexpected()).toEqual([]);
  });

  test('gives the controller a newer API version where the engine takes no older one', async () => {
    machine.programs.expect({ call: 'docker version --format *', stdout: '1.44\n' });
    expect(await machine.run([cell, '--no-upstream'])).toBe(0);
    const [call] = await callsBehind('docker run --detach');
    expect(call).toContain(' --env DOCKER_API_VERSION=1.44 switchyard/kind-lb-controller:1.2.3 --cluster ');
  });

  test('builds the images of several cells once', async () => {
    expect(await machine.run(['nftables-*-1.37-switchyard', '--no-upstream'])).toBe(0);
    expect(await callsBehind('kind create cluster')).toHaveLength(3);
    expect((await machine.programs.calls()).filter((call) => call.includes('image.ts load-balancer'))).toHaveLength(1);
  });
});

/** The programs' failures, by the step that meets them. */
const faults: readonly (readonly [step: string, call: string, said: string])[] = [
  ["cannot choose upstream's tests", 'docker run --rm --entrypoint /usr/local/bin/e2e.test *', 'manifest unknown'],
  ['cannot build our images', 'node * */tools/images/image.ts load-balancer', 'image: no space left on device'],
  [
    `cannot create the cluster ${cluster}`,
    'kind create cluster *',
    'ERROR: failed to create cluster: could not find a log line',
  ],
  ["cannot load images onto the cluster's nodes", 'kind load docker-image *', 'ERROR: image not present locally'],
  [
    'cannot install the agent, mode nftables',
    'kubectl * apply -k *',
    'the server could not find the requested resource',
  ],
  [
    'cannot install the agent, mode nftables',
    'kubectl * rollout status daemonset/switchyard *',
    'error: timed out waiting',
  ],
  [
    'cannot wait until the nodes are Ready and CoreDNS answers',
    'kubectl * wait *',
    'error: timed out waiting for the condition',
  ],
  [
    'cannot wait until the nodes are Ready and CoreDNS answers',
    'kubectl * deployment/coredns *',
    'error: exceeded its deadline',
  ],
  ['cannot start the LoadBalancer controller', 'docker run --detach *', 'network kind not found'],
  ['cannot run the conformance suite', 'node *apps/conformance/src/main.ts run *', 'conformance: no pod answers'],
  ["cannot run upstream's tests", 'kind get kubeconfig *', 'ERROR: could not locate any control plane nodes'],
];

describe('a step that fails', () => {
  test.each(faults)('%s: %s', async (step, call, said) => {
    machine.programs.expect({ call, exitCode: 3, stderr: `${said}\n` });
    expect(await machine.run([cell])).toBe(3);
    const { status, because } = await outcome();
    expect(status).toBe('error');
    expect(because).toHaveLength(1);
    expect(because[0]).toContain(`${step}: `);
    expect(because[0]).toContain(said);
    expect(because[0]).toMatch(/exited with 3 .* What to do: \S+/s);
    expect(machine.printed.join('\n')).toContain(because[0]);
    expect(await machine.result(cell, 'diagnostics/kind/journal.log')).toBe('a journal\n');
    expect(await machine.result(cell, 'diagnostics/worker-dump.txt')).toContain('what a node knows');
    expect(await machine.result(cell, 'diagnostics/switchyard-lb-a-1.log')).toContain('serving the cluster');
    const calls = await machine.programs.calls();
    const [failed, looked, removed] = ['kind export logs', 'docker exec', `kind delete cluster --name ${cluster}`].map(
      (start) => calls.findLastIndex((one) => one.startsWith(start)),
    );
    expect(failed).toBeGreaterThan(0);
    expect(looked).toBeGreaterThan(failed ?? 0);
    expect(removed).toBeGreaterThan(looked ?? 0);
    expect(await machine.clusters()).toEqual([]);
    expect(await machine.programs.unexpected()).toEqual([]);
  });

  test('the controller ends instead of serving: its last words are reported', async () => {
    machine.programs.expect({ call: 'docker logs *', stderr: 'client version 1.41 is too old\n' });
    machine.programs.expect({ call: 'docker inspect *', stdout: 'exited 1\n' });
    expect(await machine.run([cell])).toBe(3);
    expect((await outcome()).because[0]).toContain(
      'the controller ended (exited 1) and said: client version 1.41 is too old',
    );
  });

  test("a user's own controller has taken the cluster: its holder is told, and what to do", async () => {
    machine.programs.expect({ call: 'docker logs *', stderr: '{"msg":"waiting"}\n' });
    machine.programs.expect({ call: 'docker inspect *', stdout: 'running 0\n' });
    machine.programs.expect({ call: 'kubectl * get lease switchyard-lb *', stdout: 'laptop_1f0c' });
    expect(await machine.run([cell])).toBe(3);
    expect((await outcome()).because[0]).toContain(
      `another controller, laptop_1f0c, holds the Lease kube-system/switchyard-lb of ${cluster}; stop that controller`,
    );
  });

  test('a controller that holds its own Lease gets time to serve the cluster', async () => {
    const holder = `${cluster}-lb-controller_1f0c`;
    const effect =
      'n=$(cat "$here/asked" 2>/dev/null | wc -l); echo x >>"$here/asked"; [ "$n" -lt 1 ] || echo "serving the cluster"';
    machine.programs.expect({ call: 'docker logs *', effect });
    machine.programs.expect({ call: 'docker inspect *', stdout: 'running 0\n' });
    machine.programs.expect({ call: 'kubectl * get lease switchyard-lb *', stdout: holder });
    expect(await machine.run([cell, '--no-upstream'])).toBe(0);
  });

  test('the tear-down fails: the cell does too, and the rest is still removed', async () => {
    machine.programs.expect({ call: 'kind delete cluster *', exitCode: 1, stderr: 'ERROR: permission denied\n' });
    expect(await machine.run([cell])).toBe(3);
    expect((await outcome()).because[0]).toMatch(
      /the cluster swy-e2e-\S+ is still there: kind exited with 1 and said: ERROR: permission denied/,
    );
    expect(await callsBehind('docker ps --all --quiet --filter label=dev.switchyard.lb.cluster')).toHaveLength(1);
  });

  test('a program that is not there is said to be missing', async () => {
    const { runner } = machine.programs;
    const surroundings = {
      ...machine.surroundings,
      runner: {
        run: (file: string, args: readonly string[], options: Parameters<typeof runner.run>[2]) =>
          runner.run(file === 'kubectl' ? 'kubectl-gone' : file, args, options),
      },
    };
    expect(
      await runProgram([cell, '--results', `${machine.folder}/results`], surroundings, AbortSignal.timeout(60_000)),
    ).toBe(3);
    expect(machine.printed.join('\n')).toContain('cannot run kubectl-gone: no such program in PATH; install it');
    expect(await callsBehind('kind create')).toEqual([]);
  });
});

/** Failures of tests, which are not failures of the cluster. */
const findings: readonly (readonly [what: string, call: ScriptedCall, because: string])[] = [
  ['a conformance case fails', conformanceCall(['smoke/b']), 'conformance smoke/b: title of smoke/b'],
  [
    'a test of upstream fails',
    upstreamCall({ isFailing: true }),
    `upstream ${upstreamTests.fails}: expected <bool>: true`,
  ],
];

test('a failed test of upstream is printed at once, by its name', async () => {
  machine.programs.expect(upstreamCall({ isFailing: true }));
  await machine.run([cell]);
  const told = machine.printed.indexOf(`  upstream failed: ${upstreamTests.fails}`);
  expect(told).toBeGreaterThan(0);
  expect(told).toBeLessThan(machine.printed.findIndex((line) => line.includes("run upstream's tests: done")));
});

describe('tests that fail', () => {
  test.each(findings)('%s: exit status 1, diagnostics, and the other suite has run', async (_, call, because) => {
    machine.programs.expect(call);
    expect(await machine.run([cell])).toBe(1);
    expect(await outcome()).toMatchObject({ status: 'failed', because: [because] });
    expect(await machine.result(cell, 'diagnostics/events.txt')).toContain('an object');
    expect((await outcome()).notes.map((line) => line.split(':')[0])).toEqual([
      'conformance',
      'upstream',
      'upstream skipped itself',
    ]);
    expect(await machine.clusters()).toEqual([]);
  });

  test('upstream ends before its last test: that is an error, since its result is unknown', async () => {
    machine.programs.expect(upstreamCall({ isCut: true }));
    expect(await machine.run([cell])).toBe(3);
    expect((await outcome()).because[0]).toContain(
      `1 tests are in no report, for example ${upstreamTests.skipsItself}`,
    );
  });

  test('a skip that no test of the release matches fails before the cluster is made', async () => {
    const entry = '- test: should be gone\n  reason: it is no longer there\n  link: https://example.com/gone\n';
    await appendFile(`${machine.surroundings.checkout}/e2e/upstream-skips/services.yaml`, entry);
    expect(await machine.run([cell])).toBe(3);
    expect((await outcome()).because[0]).toContain('upstream-skips/services.yaml:4:3: [1] (should be gone)');
    expect(await callsBehind('kind create')).toEqual([]);
  });

  test('a skip for no cell of the matrix is refused before anything runs', async () => {
    const entry =
      '- test: should not\n  reason: not in this one\n  link: https://example.com/\n  cells: { kubernetes: ["1.30"] }\n';
    await appendFile(`${machine.surroundings.checkout}/e2e/upstream-skips/services.yaml`, entry);
    expect(await machine.run([cell])).toBe(2);
    expect(machine.printed.at(-1)).toContain('services.yaml:4:3: [1]: no cell of the matrix is one of its cells');
  });

  test('a focus that no test of the release has fails before the cluster is made', async () => {
    const list = `    test/e2e/network/service.go:1: ${upstreamTests.passes}\n`;
    machine.programs.expect({ call: 'docker run --rm --entrypoint */e2e.test * --list-tests', stdout: list });
    expect(await machine.run([cell])).toBe(3);
    expect((await outcome()).because[0]).toContain(
      'of 1 tests none has a name that begins with: [sig-network] LoadBalancers; ',
    );
    expect(await callsBehind('kind create')).toEqual([]);
  });
});
