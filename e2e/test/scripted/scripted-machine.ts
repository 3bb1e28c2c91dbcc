import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@switchyard/core';
import { type E2eSurroundings, runProgram } from '../../src/program.ts';
import { kindScript, scriptedNames } from './kind-script.ts';
import { scriptPrograms, type ScriptedPrograms } from './scripted-programs.ts';

/** This checkout. */
export const checkout: string = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

/** A machine whose kind, docker, kubectl and node are scripted. */
export interface ScriptedMachine extends AsyncDisposable {
  readonly programs: ScriptedPrograms;
  readonly surroundings: E2eSurroundings;
  /** All that was printed. */
  readonly printed: string[];
  /** Runs a command line; results lie in `folder/results`. */
  run(args: readonly string[], signal?: AbortSignal): Promise<number>;
  /** Names of clusters that are there. */
  clusters(): Promise<readonly string[]>;
  /** A cluster that an earlier run made. */
  addCluster(name: string): Promise<void>;
  /** A file of a cell's results; empty when there is none. */
  result(cell: string, name: string): Promise<string>;
  readonly folder: string;
}

/** `upstream-skips` of the checkout are replaced by those that the scripted tests of upstream fit. */
export async function scriptMachine(): Promise<ScriptedMachine> {
  const folder = await mkdtemp(join(tmpdir(), 'swy-e2e-test-'));
  const programs = await scriptPrograms(join(folder, 'script'), scriptedNames, kindScript());
  const fake = await fakeCheckout(join(folder, 'checkout'), programs);
  const printed: string[] = [];
  const surroundings: E2eSurroundings = {
    checkout: fake,
    cwd: folder,
    runner: programs.runner,
    clock: systemClock,
    machine: { platform: 'linux', isRoot: true, inotify: { limit: 128, used: 0 } },
    stateFolder: join(folder, 'state'),
    network: 'kind',
    dockerSocket: '/var/run/docker.sock',
    print: (line) => void printed.push(line),
  };
  const results = join(folder, 'results');
  const clusterFolder = join(programs.here, 'clusters');
  return {
    programs,
    surroundings,
    printed,
    folder,
    run: (args, signal = AbortSignal.timeout(60_000)) =>
      runProgram([...args, '--results', results], surroundings, signal),
    clusters: async () => (existsSync(clusterFolder) ? readdir(clusterFolder) : []),
    addCluster: async (name) => {
      await mkdir(clusterFolder, { recursive: true });
      await writeFile(join(clusterFolder, name), '');
    },
    result: (cell, name) => readFile(join(results, cell, name), 'utf8').catch(() => ''),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** The parts of a checkout that the driver and the pages use: matrix, skips, the apps' versions, pages, our own programs as scripted ones. */
async function fakeCheckout(folder: string, programs: ScriptedPrograms): Promise<string> {
  for (const page of ['docs/operate/kind.md', 'docs/operate/migrate.md', 'deploy/README.md']) {
    await mkdir(dirname(join(folder, page)), { recursive: true });
    await writeFile(join(folder, page), await readFile(join(checkout, page)));
  }
  for (const [program, path] of [
    ['dev', 'dev'],
    ['switchyard-lb', 'apps/kind-lb-controller/bin/switchyard-lb'],
  ] as const) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), `#!/bin/sh\nexec '${programs.bin}/${program}' "$@"\n`, { mode: 0o755 });
  }
  for (const app of ['node-agent', 'kind-lb-controller', 'conformance']) {
    await mkdir(join(folder, 'apps', app), { recursive: true });
    await writeFile(join(folder, 'apps', app, 'package.json'), '{ "version": "1.2.3" }');
  }
  await mkdir(join(folder, 'e2e/upstream-skips'), { recursive: true });
  await writeFile(join(folder, 'e2e/matrix.json'), await readFile(join(checkout, 'e2e/matrix.json')));
  const skip = `- test: should work after restarting kube-proxy
  reason: there is no kube-proxy in it
  link: https://example.com/why
`;
  await writeFile(join(folder, 'e2e/upstream-skips/services.yaml'), skip);
  return folder;
}
