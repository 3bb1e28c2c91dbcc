import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { type BuildContext, type BuildOptions, context } from 'esbuild';
import { checkout, isBpf, mutatedText } from './apply-mutant.ts';
import type { Mutant } from './mutant.ts';

const run = promisify(execFile);
const agent = join(checkout, 'apps/node-agent');
const objects = ['socket.bpf.o', 'wire.bpf.o'];

/** Bundles the agent again and again; what does not change is read once. Disposing ends esbuild's part of it. */
export class AgentBundler implements AsyncDisposable {
  readonly #context: Promise<BuildContext>;
  #mutated: { readonly file: string; readonly text: string; isLoaded: boolean } | undefined;

  constructor() {
    this.#context = this.#prepare();
  }

  /**
   * Bundles the node agent into `folder`, with this mutant in it or as it is, and returns the program to start. The checkout is
   * only read. Rejects when it cannot be bundled or, for a BPF program, compiled. One at a time.
   */
  async bundle(mutant: Mutant | undefined, folder: string): Promise<string> {
    const out = join(folder, 'dist-bundle');
    await mkdir(out, { recursive: true });
    const isSource = mutant !== undefined && !isBpf(mutant);
    this.#mutated = isSource
      ? { file: join(checkout, mutant.file), text: await mutatedText(mutant), isLoaded: false }
      : undefined;
    const { outputFiles = [] } = await (await this.#context).rebuild();
    if (this.#mutated?.isLoaded === false) throw new Error(`the agent does not contain ${mutant?.file}`);
    for (const { path, contents } of outputFiles) await writeFile(join(out, basename(path)), contents);
    const addons = join(checkout, 'packages/native/build');
    for (const name of ['switchyard_native.node', 'switchyard_bpf.node'])
      await copyFile(join(addons, name), join(out, name));
    const programs = mutant !== undefined && isBpf(mutant) ? await compileBpf(mutant, folder) : ownPrograms;
    for (const name of objects) await copyFile(join(programs, name), join(out, name));
    return writeProgram(folder, join(out, 'main.mjs'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#context).dispose();
  }

  async #prepare(): Promise<BuildContext> {
    return context({
      ...(await bundleOptions()),
      outdir: join(tmpdir(), 'switchyard-mutant'), // never written
      write: false,
      plugins: [
        {
          name: 'mutant',
          setup: ({ onLoad }) =>
            onLoad({ filter: /\.ts$/ }, ({ path }) => {
              const mutated = this.#mutated;
              if (path !== mutated?.file) return undefined;
              mutated.isLoaded = true;
              return { contents: mutated.text, loader: 'ts' };
            }),
        },
      ],
    });
  }
}

const ownPrograms = join(checkout, 'packages/backend-ebpf/build');

/** Compiles the BPF programs with this mutant in them; returns the folder of the objects. */
export async function compileBpf(mutant: Mutant, folder: string): Promise<string> {
  const [sources, built] = [join(folder, 'bpf'), join(folder, 'bpf-build')];
  await cp(join(checkout, 'packages/backend-ebpf/bpf'), sources, { recursive: true });
  await writeFile(join(sources, mutant.file.slice(mutant.file.lastIndexOf('/') + 1)), await mutatedText(mutant));
  const tool = join(checkout, 'packages/backend-ebpf/tools/build-bpf.ts');
  await run(process.execPath, ['--conditions=@switchyard/source', tool, sources, built]);
  return built;
}

/** Bundles like apps/node-agent, without options that only make the result smaller or easier to debug. */
async function bundleOptions(): Promise<BuildOptions> {
  const manifest = JSON.parse(await readFile(join(agent, 'package.json'), 'utf8')) as {
    readonly nx: { readonly targets: { readonly bundle: { readonly command: string } } };
  };
  const { command } = manifest.nx.targets.bundle;
  const flags = [...command.matchAll(/"--([^"]+)"|--(\S+)/g)].map((match) => match[1] ?? match[2] ?? '');
  const value = (name: string): string | undefined => flags.find((flag) => flag.startsWith(name))?.slice(name.length);
  const aliases = flags.flatMap((flag) =>
    flag.startsWith('alias:') ? [flag.slice(6).split('=') as [string, string]] : [],
  );
  return {
    absWorkingDir: agent,
    entryPoints: ['src/main.ts'],
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: value('target=') ?? 'node22',
    conditions: [value('conditions=') ?? ''],
    alias: Object.fromEntries(aliases),
    banner: { js: value('banner:js=') ?? '' },
    outExtension: { '.js': '.mjs' },
    logLevel: 'silent',
  };
}

/** A program as apps/node-agent/bin/switchyard-agent is one: it becomes the agent. */
async function writeProgram(folder: string, bundle: string): Promise<string> {
  const program = join(folder, 'switchyard-agent');
  const flags = '--max-semi-space-size=1 --no-parallel-scavenge';
  const script = `#!/bin/sh\nexec '${process.execPath}' ${flags} '${bundle}' "$@"\n`;
  await writeFile(program, script, { mode: 0o755 });
  return program;
}
