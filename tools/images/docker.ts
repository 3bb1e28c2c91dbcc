import { runProgram } from '../debian/run-program.ts';

/** How the Docker CLI is called: `docker` of the PATH and its environment, or a certain engine's. */
export interface DockerCli {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The CLI as a user of this machine would call it. */
export const machineDocker: DockerCli = { file: 'docker', env: {} };

/** What is to be built. */
export interface DockerBuild {
  readonly dockerfile: string;
  readonly context: string;
  readonly tag: string;
  /** Debian's name, which is Docker's. */
  readonly architecture: string;
  readonly args: Readonly<Record<string, string>>;
}

/** One layer, or one setting, of an image. */
export interface ImageLayer {
  readonly createdBy: string;
  /** Bytes; 0 for a setting. */
  readonly size: number;
}

/** An image of the engine. */
export interface BuiltImage {
  readonly tag: string;
  readonly id: string;
  /** Bytes, unpacked, of all layers. */
  readonly size: number;
  /** The last first, those of the base too. */
  readonly layers: readonly ImageLayer[];
}

/** Builds an image with the Docker CLI and describes it. */
export async function dockerBuild(docker: DockerCli, build: DockerBuild, signal: AbortSignal): Promise<BuiltImage> {
  const settings = Object.entries(build.args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
  const platform = ['--platform', `linux/${build.architecture}`];
  const command = ['build', ...platform, '--file', build.dockerfile, '--tag', build.tag, ...settings, build.context];
  await runProgram(docker.file, command, { env: docker.env, signal });
  return describeImage(docker, build.tag, signal);
}

async function describeImage(docker: DockerCli, tag: string, signal: AbortSignal): Promise<BuiltImage> {
  const run = async (args: readonly string[]): Promise<string> =>
    (await runProgram(docker.file, args, { env: docker.env, signal })).stdout.trim();
  const [id = '', size = ''] = (await run(['image', 'inspect', '--format', '{{.Id}} {{.Size}}', tag])).split(' ');
  const history = await run(['history', '--no-trunc', '--human=false', '--format', '{{.Size}}\t{{.CreatedBy}}', tag]);
  return { tag, id, size: Number(size), layers: history.split('\n').map(parseLayer) };
}

/** Takes away what the builders of Docker put before an instruction. */
function parseLayer(line: string): ImageLayer {
  const [size = '0', createdBy = ''] = line.split('\t');
  return {
    size: Number(size),
    createdBy: createdBy.replace(/^\/bin\/sh -c #\(nop\)\s+/, '').replace(/ # buildkit$/, ''),
  };
}
