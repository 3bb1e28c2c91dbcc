import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { type DebianArchitecture, machineArchitecture } from '../debian/debian-root.ts';
import { runScript } from '../script.ts';
import { describeImage, machineDocker, withBaseHint } from './docker.ts';
import { buildImage, buildLocalBase, defaultTag, publicBase } from './build-image.ts';
import { agentBackends, type ImageName, images, isImageName } from './definitions.ts';
import { imageSbom } from './sbom.ts';

const usage = `usage: ./dev image [IMAGE] [--backend ${agentBackends.join('|')}] [--arch amd64|arm64] [--tag NAME] [--base IMAGE | --local-base] [--sbom FILE]

Builds a container image with the Docker CLI of this machine and prints its size.

  IMAGE              agent (the node agent, default), load-balancer (what the controller runs for a Service), kind-lb-controller,
                     conformance (what pods of the conformance runner run on a cluster)
  --backend BACKEND  for which dataplane backend the agent's image is (nftables)
  --arch ARCH        the nodes' architecture (this machine's); both are built on either
  --tag NAME         name of the image (switchyard/IMAGE:VERSION, switchyard/agent-BACKEND:VERSION as in deploy/; with --arch :VERSION-ARCH)
  --base IMAGE       image below (distroless of this machine's Debian release)
  --local-base       make the base from Debian packages instead: needs no registry
  --sbom FILE        write the image's contents there, as CycloneDX JSON`;

async function main(signal: AbortSignal): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      backend: { type: 'string' },
      arch: { type: 'string' },
      tag: { type: 'string' },
      base: { type: 'string' },
      'local-base': { type: 'boolean', default: false },
      sbom: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return console.log(usage);
  const image = parseImage(positionals, values.backend);
  const architecture = values.arch === undefined ? machineArchitecture() : parseArchitecture(values.arch);
  if (values.base !== undefined && values['local-base']) throw new Error('--base and --local-base exclude each other');
  const common = { architecture, docker: machineDocker, signal };
  const localBase = `switchyard/local-base:${architecture}`;
  if (values['local-base']) console.log(describeImage(await buildLocalBase({ ...common, tag: localBase })));
  const base = values['local-base'] ? localBase : (values.base ?? requiredPublicBase());
  const tag = values.tag ?? defaultTag(image, values.arch);
  const built = buildImage({ ...common, image, tag, base }).catch((error: unknown) => {
    throw values['local-base'] ? error : withBaseHint(error, base);
  });
  console.log(describeImage(await built));
  if (values.sbom === undefined) return;
  const sbom = await imageSbom({ image, architecture, tag, base, signal });
  await writeFile(values.sbom, `${JSON.stringify(sbom, undefined, 2)}\n`);
}

function parseImage(positionals: readonly string[], backend: string | undefined): ImageName {
  const [name = 'agent', ...surplus] = positionals;
  if (surplus.length > 0) throw new Error(`one image at a time, not also ${surplus.join(', ')}`);
  const full = name === 'agent' ? `agent-${backend ?? 'nftables'}` : name;
  if (name !== 'agent' && backend !== undefined) throw new Error(`--backend is for the agent's image, not for ${name}`);
  if (isImageName(full)) return full;
  throw new Error(`there is no image '${full}', only ${Object.keys(images).join(', ')}`);
}

function parseArchitecture(text: string): DebianArchitecture {
  if (text === 'amd64' || text === 'arm64') return text;
  throw new Error(`--arch is amd64 or arm64, not '${text}'`);
}

function requiredPublicBase(): string {
  const base = publicBase();
  if (base !== undefined) return base;
  throw new Error(
    'the programs in the image come from the packages of this machine, which is no Debian: no public base has their libraries; use --local-base, or --base',
  );
}

await runScript(main, 'image: ');
