import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { blocksOf, commandsOf, pagePlans, type PlaceValues, planPage } from '../../src/pages.ts';
import { faultOf } from '../pages/known-commands.ts';
import { simpleCommands } from '../pages/simple-commands.ts';
import { checkout, type ScriptedMachine, scriptMachine } from '../scripted/scripted-machine.ts';

// The commands of pages as a reader types them. Here they are read and played; on a cell they run: ./dev e2e docs CELL.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 30_000 });

const values: PlaceValues = {
  cluster: 'swy-e2e-a',
  image: 'kindest/node:v1.36.4',
  folder: '/tmp/results',
  worker: 'swy-e2e-a-worker',
  controller: 'swy-e2e-a-lb-controller',
  imageFlags: ' --local-base',
  apiFlags: ' --env DOCKER_API_VERSION=1.44',
};
const pages = pagePlans.map((plan) => ({ plan, text: readFileSync(`${checkout}/${plan.page}`, 'utf8') }));

describe.each(pages)('$plan.page', ({ plan, text }) => {
  test('has an entry of the plan for each block', () => {
    expect(planPage(plan, text)).toHaveLength(blocksOf(plan.page, text).length);
  });

  const blocks = planPage(plan, text).map((one) => ({ ...one, line: one.block.line }));

  test.each(blocks)('line $line is shell, as written and as it is run', ({ block, plan: entry }) => {
    for (const commands of [block.text, commandsOf({ block, plan: entry }, values)]) {
      expect(spawnSync('sh', ['-n'], { input: commands, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
      expect(commands).not.toMatch(/\{(?:cluster|image|folder|worker|controller|imageFlags|apiFlags)\}/);
    }
  });

  test.each(blocks)('line $line has only commands and flags that exist', ({ block, plan: entry }) => {
    for (const commands of [block.text, commandsOf({ block, plan: entry }, values)]) {
      const found = simpleCommands(commands);
      expect(found.length).toBeGreaterThan(0);
      expect(found.flatMap((words) => faultOf(words) ?? [])).toEqual([]);
    }
  });
});

describe('commands and flags that do not exist are found', () => {
  test.each([
    ['kubectl get pods --no-such-flag', /unknown flag: --no-such-flag/],
    ['kubectl no-such-command', /unknown command/],
    ['./dev image --bakend nftables', /--bakend is not in its --help/],
    ['./dev image load-balancers-of-ours', /load-balancers-of-ours is not in its --help/],
    ['apps/kind-lb-controller/bin/switchyard-lb check a --drain-tim 20s', /--drain-tim is not in its --help/],
    ['docker run -d switchyard/kind-lb-controller:0.1.0 --publish-all', /--publish-all is not in its --help/],
    ['docker run --detached image', /docker run: unknown flag --detached/],
    ['cat file', /unknown command: cat file/],
    ['A=$(helm list) true', /unknown command: helm list/],
  ])('%s', (commands, fault) => {
    expect(simpleCommands(commands).flatMap((words) => faultOf(words) ?? [])[0]).toMatch(fault);
  });
});

test('a shell text is taken apart into its simple commands', () => {
  const text = `kind create --config - <<'CONFIG' # a file
kind: Cluster
CONFIG
A=$(kubectl get x -o jsonpath='{.a | b}')
(for i in $(seq 6); do curl -s "http://$A/$(echo b)" > /dev/null && echo ok || echo lost; done | sort) &
docker run -d \\
  image; wait
`;
  expect(simpleCommands(text)).toEqual([
    ['kind', 'create', '--config', '-'],
    ['kubectl', 'get', 'x', '-o', 'jsonpath={.a | b}'],
    ['seq', '6'],
    ['echo', 'b'],
    ['curl', '-s', 'http://$A/$()'],
    ['echo', 'ok'],
    ['echo', 'lost'],
    ['sort'],
    ['docker', 'run', '-d', 'image'],
    ['wait'],
  ]);
});

describe('the plan of a page', () => {
  const plan = {
    page: 'docs/a.md',
    cluster: 'page',
    blocks: [{ kind: 'run', on: 'machine', begins: 'echo a' }],
  } as const;
  const sh = (...texts: readonly string[]): string =>
    texts.map((text) => `# A page\n\`\`\`sh\n${text}\n\`\`\`\n`).join('\n');

  test.each([
    ['a block that it does not know', sh('echo a', 'echo b'), /^docs\/a\.md:8: no entry is for this block/],
    ['an entry without a block', sh('echo b'), /^docs\/a\.md has no block that begins with "echo a"/],
    ['an entry for two blocks', sh('echo a 1', 'echo a 2'), /^docs\/a\.md:3 and :8 both begin with "echo a"/],
  ])('is refused for %s', (_, text, message) => {
    expect(() => planPage(plan, text)).toThrow(message);
  });

  test('is refused for a substitution that has nothing to do', () => {
    const [planned] = planPage(
      { ...plan, blocks: [{ ...plan.blocks[0], replace: [['echo c', 'true']] }] },
      sh('echo a'),
    );
    expect(() => planned === undefined || commandsOf(planned, values)).toThrow(
      /^docs\/a\.md:3: a substitution is for "echo c", which the block does not have/,
    );
  });
});

describe('./dev e2e docs', () => {
  const cell = 'nftables-dual-1.36-switchyard';
  const cluster = 'swy-e2e-nftables-dual-1-36-switchyard';
  let machine: ScriptedMachine;

  beforeEach(async () => {
    machine = await scriptMachine();
  });
  afterEach(() => machine[Symbol.asyncDispose]());

  test('runs the commands of all pages, each page on a cluster as its reader has it, and leaves nothing', async () => {
    expect(await machine.run(['docs', cell]), machine.printed.join('\n')).toBe(0);
    expect(await machine.programs.unexpected()).toEqual([]);
    expect(await machine.clusters()).toEqual([]);
    const calls = await machine.programs.calls();
    const order = [
      /^dev image --backend nftables$/,
      /^kind create cluster --image kindest\/node:v1\.36\.4@sha256:\w+ --retain --config -$/,
      /^helm install switchyard /,
      new RegExp(`^docker run -d --name ${cluster}-lb-controller .* --cluster ${cluster}$`),
      /^switchyard-lb check zeroapp /,
      /^kubectl rollout restart deployment zeroapp$/,
      /^kind delete cluster$/,
      /^kind create cluster --name /,
      /^kubectl -n kube-system edit configmap kube-proxy$/,
      new RegExp(`^kubectl -n kube-system delete pod .*spec.nodeName=${cluster}-worker$`),
      new RegExp(`^docker exec ${cluster}-worker sh -euc curl -s http://127.0.0.1:10249/proxyMode`),
      /^kubectl -n kube-system rollout undo daemonset\/kube-proxy$/,
      /^kind create cluster --name /,
      /^kubectl -n kube-system delete daemonset kube-proxy$/,
      /^kubectl apply -k deploy\/kustomize\/overlays\/nftables$/,
    ];
    let from = 0;
    for (const wanted of order) {
      const found = calls.findIndex((call, index) => index >= from && wanted.test(call));
      expect(found, `${wanted} after ${calls[from - 1] ?? 'the beginning'}`).toBeGreaterThanOrEqual(from);
      from = found + 1;
    }
    const { notes } = JSON.parse(await machine.result(cell, 'outcome.json')) as { readonly notes: readonly string[] };
    for (const { plan } of pages)
      expect(notes.join('\n')).toMatch(new RegExp(`^${plan.page}: \\d+ of \\d+ blocks ran$`, 'm'));
    expect(notes.filter((note) => note.includes('was left out: '))).toHaveLength(
      pagePlans.flatMap(({ blocks }) => blocks).filter(({ kind }) => kind === 'leftOut').length,
    );
  });

  test('fails with page and line at a command that fails', async () => {
    machine.programs.expect({ call: 'kubectl annotate *', exitCode: 1, stderr: 'error: no such service\n' });
    expect(await machine.run(['docs', cell])).toBe(3);
    expect(machine.printed.join('\n')).toMatch(
      /cannot run the commands of docs\/operate\/kind\.md: docs\/operate\/kind\.md:\d+: a command of the page fails: .*no such service/s,
    );
  });

  test('fails for a block that the plan does not know', async () => {
    await appendFile(`${machine.surroundings.checkout}/deploy/README.md`, '\n```sh\nkubectl get nodes\n```\n');
    expect(await machine.run(['docs', cell])).toBe(3);
    expect(machine.printed.join('\n')).toMatch(/deploy\/README\.md:\d+: no entry is for this block/);
    expect((await machine.programs.calls()).filter((call) => call.startsWith('kind create'))).toEqual([]);
  });

  test.each(['nftables-dual-1.37-none', 'ebpf-dual-1.37-switchyard', 'lab-nftables-dual'])(
    'refuses %s',
    async (other) => {
      expect(await machine.run(['docs', other])).toBe(2);
      expect(machine.printed.join('\n')).toContain(`${other}: the pages run on cells such as `);
    },
  );

  test('says that helm is missing before a cluster is made', async () => {
    machine.programs.expect({ call: 'helm version *', exitCode: 1, stderr: 'helm: broken' });
    expect(await machine.run(['docs', cell])).toBe(3);
    expect(machine.printed.join('\n')).toContain('helm ends with 1: helm: broken');
    expect((await machine.programs.calls()).filter((call) => call.startsWith('kind create'))).toEqual([]);
  });
});
