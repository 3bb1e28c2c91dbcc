import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { createLab, type DockerEngine, dockerPackages, startDockerEngine } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { debianRoot } from '../../../tools/debian/debian-root.ts';
import { type E2eSurroundings, runProgram } from '../../src/program.ts';
import { readSkipFolder } from '../../src/skips.ts';
import { buildPlayedImages, type PlayedImages } from '../played/played-images.ts';
import { conformanceCall } from '../scripted/kind-script.ts';
import { checkout } from '../scripted/scripted-machine.ts';
import { type ScriptedPrograms, scriptPrograms } from '../scripted/scripted-programs.ts';

// The real kind (Debian trixie's) and the real Docker CLI on a real Docker Engine. Nodes are containers of an image
// made here, which plays what kind calls inside a node; no API server is behind them, so kubectl and our conformance runner are scripted.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const cell = 'nftables-ipv4-1.36-switchyard';
const cluster = 'swy-e2e-nftables-ipv4-1-36-switchyard';
const printed: string[] = [];
let folder: string;
let engine: DockerEngine;
let images: PlayedImages;
let programs: ScriptedPrograms;
let surroundings: E2eSurroundings;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swy-e2e-kind-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const docker = await debianRoot({ ...dockerPackages, signal });
  const kind = await debianRoot({ packages: ['kind'], exclude: ['libc6'], suite: 'trixie', signal });
  const busybox = await debianRoot({ packages: ['busybox-static'], exclude: ['libc6'], signal });
  const lab = stack.use(await createLab({ name: 'e2ekind', nodes: 1, ipFamilies: ['IPv4'] }, signal));
  engine = stack.use(await startDockerEngine({ lab, host: lab.nodes[0]!, programs: docker }, signal));
  programs = await scriptPrograms(
    join(folder, 'script'),
    ['kubectl', 'node'],
    [
      { call: 'kubectl version --client' },
      { call: 'kubectl --kubeconfig * apply -k *' },
      { call: 'kubectl --kubeconfig * rollout status *' },
      { call: 'kubectl --kubeconfig * wait *' },
      conformanceCall(),
      { call: 'node * */tools/images/image.ts *' },
      // Of the images one is really built, the agent's; its 141 MB would only take their time on the way into three nodes.
      {
        call: 'node * */tools/images/image.ts agent *',
        effect: `${process.execPath} "$@" && docker tag kindest/played:v1.36.4 switchyard/agent-nftables:0.1.0; exit`,
      },
    ],
  );
  await programs.install();
  images = await buildPlayedImages({
    engine,
    busybox,
    context: await contextFolder(),
    upstreamTests: await upstreamTests(),
    tags,
  });
  const real = createCommandRunner();
  const env = { ...engine.command.env, PATH: `${programs.bin}:${kind}/usr/bin:${docker}/usr/bin:/usr/bin:/bin` };
  surroundings = {
    checkout,
    cwd: folder,
    runner: { run: (file, args, options) => real.run(file, args, { ...options, env: { ...options.env, ...env } }) },
    clock: systemClock,
    machine: { platform: 'linux', isRoot: true, inotify: undefined },
    stateFolder: join(folder, 'state'),
    network: 'kind',
    dockerSocket: engine.socket,
    print: (line) => void printed.push(line),
  };
});

afterAll(() => stack.disposeAsync());

/** The names under which the driver looks for what is played. */
const tags = [
  'switchyard/conformance:0.1.0',
  'switchyard/kind-lb-controller:0.1.0',
  'registry.k8s.io/conformance:v1.36.4',
];

async function contextFolder(): Promise<string> {
  const context = join(folder, 'context');
  await mkdir(context);
  return context;
}

/** One test to run, and one for each entry of the skip list. */
async function upstreamTests(): Promise<readonly string[]> {
  const skips = await readSkipFolder(`${checkout}/e2e/upstream-skips`);
  const skipped = skips.map(({ test: parts }) => parts.join(' '));
  return [
    '[sig-network] Services should serve a basic endpoint from pods',
    ...skipped.map((name) => (name.startsWith('[sig-') ? name : `[sig-network] Services ${name}`)),
  ];
}

/** Runs the cell with nodes of this image. */
async function run(nodeImage: string, ...args: readonly string[]): Promise<number> {
  const kubernetes = [{ version: '1.36', release: '1.36.4', nodeImage, digest: '' }];
  const matrix = {
    backends: ['nftables'],
    ipFamilies: ['ipv4'],
    loadBalancers: ['switchyard'],
    kubernetes,
    kind: '0.27.0',
    exclude: [],
    upstreamFocus: ['[sig-network] '],
  };
  await writeFile(join(folder, 'matrix.json'), JSON.stringify(matrix));
  printed.length = 0;
  return runProgram(['--matrix', 'matrix.json', '--results', 'results', ...args], surroundings, signal);
}

function result(name: string): Promise<string> {
  return readFile(join(folder, 'results', cell, name), 'utf8');
}

/** Containers and networks; kind keeps its network. */
async function left(): Promise<string> {
  return (await engine.cli(['ps', '--all', '--format', '{{.Names}}'])).stdout;
}

test('a cell runs to its end: images are built and reach all nodes, the controller and the tests run beside them, all is removed', async () => {
  const status = await run(images.node, cell, '--local-base');
  expect(printed.join('\n')).toContain(`passed   ${cell}`);
  expect(status).toBe(0);
  const log = await result('commands.log');
  expect(log).toMatch(/switchyard\/agent-nftables:\d+\.\d+\.\d+ \(sha256:\w+\): \d+\.\d MB, unpacked/);
  for (const node of ['control-plane', 'worker', 'worker2']) {
    expect(log).toContain(`"switchyard/agent-nftables:0.1.0" with ID`);
    expect(log).toMatch(new RegExp(`not yet present on node "${cluster}-${node}", loading`));
  }
  expect(await result('kubeconfig')).toMatch(/server: https:\/\/127\.0\.0\.1:\d+/);
  expect(await result('kubeconfig-internal')).toContain(`server: https://${cluster}-control-plane:6443`);
  expect(await result('upstream/junit_01.xml')).toContain('should serve a basic endpoint');
  const { notes } = JSON.parse(await result('outcome.json')) as { readonly notes: readonly string[] };
  expect(notes[1]).toMatch(
    /^upstream: [1-9]\d* passed, 0 failed, 0 skipped themselves, [1-9]\d* skipped by e2e\/upstream-skips$/,
  );
  expect(await left()).toBe('');
  expect(await programs.unexpected()).toEqual([]);
});

test("a node that does not come up: kind's own words, its logs, and nothing is left", async () => {
  expect(await run(images.broken, cell, '--no-build')).toBe(3);
  const said = printed.join('\n');
  expect(said).toContain(`cannot create the cluster ${cluster}: kind made no cluster: kind exited with 1 and said: `);
  expect(said).toContain('ERROR: failed to create cluster');
  expect(await result('diagnostics/containers.txt')).toContain(`${cluster}-control-plane`);
  expect(existsSync(join(folder, 'results', cell, 'diagnostics/kind'))).toBe(true);
  expect(await left()).toBe('');
});

test('--list asks the real programs', async () => {
  expect(await run('kindest/not-here:v1.36.4', '--list')).toBe(0);
  expect(printed.join('\n')).toMatch(
    /^\[1\] kindest\/not-here:v1\.36\.4 is not in the engine and cannot be pulled: \S+/m,
  );
  expect(await run(images.node, '--list', 'nftables-*')).toBe(0);
  expect(printed.join('\n')).toMatch(new RegExp(`^${cell}  yes$`, 'm'));
});
