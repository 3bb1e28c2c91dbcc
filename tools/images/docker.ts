import { readFile } from 'node:fs/promises';
import { runProgram } from '../debian/run-program.ts';

/** How the Docker CLI is called: `docker` of the PATH and its environment, or a certain engine's. */
export interface DockerCli {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The CLI as a user of this machine would call it. */
export const machineDocker: DockerCli = { file: 'docker', env: {} };

export interface DockerBuild {
  readonly dockerfile: string;
  readonly context: string;
  readonly tag: string;
  /** Debian's name, which is Docker's. */
  readonly architecture: string;
  readonly args: Readonly<Record<string, string>>;
}

export interface ImageLayer {
  /** Folder of the build context that it is a copy of, or `base`. */
  readonly name: string;
  /** Bytes, unpacked. */
  readonly size: number;
}

export interface BuiltImage {
  readonly tag: string;
  readonly id: string;
  /** Bytes, unpacked, of all layers. */
  readonly size: number;
  /** From the bottom up; those of the base first. */
  readonly layers: readonly ImageLayer[];
}

export async function dockerBuild(docker: DockerCli, build: DockerBuild, signal: AbortSignal): Promise<BuiltImage> {
  const settings = Object.entries(build.args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
  const platform = ['--platform', `linux/${build.architecture}`];
  const command = ['build', ...platform, '--file', build.dockerfile, '--tag', build.tag, ...settings, build.context];
  await runProgram(docker.file, command, { env: docker.env, signal });
  const copies = [...(await readFile(build.dockerfile, 'utf8')).matchAll(/^COPY (?:--\S+ )*(\w+)\//gm)];
  const names = copies.map(([, name = '']) => name);
  return inspectImage(docker, { tag: build.tag, names }, signal);
}

async function inspectImage(
  docker: DockerCli,
  { tag, names }: { readonly tag: string; readonly names: readonly string[] },
  signal: AbortSignal,
): Promise<BuiltImage> {
  const run = async (args: readonly string[]): Promise<string> =>
    (await runProgram(docker.file, args, { env: docker.env, signal })).stdout.trim();
  const [id = '', size = ''] = (await run(['image', 'inspect', '--format', '{{.Id}} {{.Size}}', tag])).split(' ');
  const history = await run(['history', '--human=false', '--no-trunc', '--format', '{{.Size}} {{.CreatedBy}}', tag]);
  return { tag, id, size: Number(size), layers: nameLayers(history.split('\n'), names) };
}

/**
 * `history` is the image's, the last instruction first: its size, and what it was. Settings have no size and are no layers; a copy is
 * one even if it is empty. `names` are those of the last copies, from the bottom up.
 */
export function nameLayers(history: readonly string[], names: readonly string[]): readonly ImageLayer[] {
  const unused = [...names];
  const layers: ImageLayer[] = [];
  for (const line of history) {
    const size = Number.parseInt(line, 10);
    const name = /\bCOPY\b/.test(line) ? unused.pop() : undefined;
    if (size > 0 || name !== undefined) layers.unshift({ name: name ?? 'base', size });
  }
  return layers;
}

/** The image's size and its layers', from the bottom up, as lines of text. */
export function describeImage({ tag, id, size, layers }: BuiltImage): string {
  const lines = layers.map((layer) => `  ${megabytes(layer.size).padStart(9)}  ${layer.name}`);
  return [`${tag} (${id.slice(0, 19)}): ${megabytes(size)}, unpacked`, ...lines].join('\n');
}

/** Bytes as text in MB of 1,000,000 bytes, as Docker counts. */
function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Messages of both Docker builders when the base cannot be pulled from its registry. */
const pullFailure =
  /dial tcp|no such host|network is unreachable|i\/o timeout|TLS handshake timeout|Client\.Timeout|failed to resolve source metadata|failed to do request|pull access denied|toomanyrequests/;
/** Messages when the engine itself cannot be reached. */
const engineFailure = /docker daemon|docker api|error during connect/i;

/** Adds to a build's failure, where it looks as if `base` could not be pulled, what to do without a registry. Anything else stays as it is. */
export function withBaseHint(error: unknown, base: string): unknown {
  if (!(error instanceof Error) || !pullFailure.test(error.message) || engineFailure.test(error.message)) return error;
  const hint = `the base ${base} cannot be pulled; --local-base builds a base from this machine's Debian packages instead, without a registry`;
  return new Error(`${error.message}\n${hint}`, { cause: error });
}
