import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { seconds } from '@switchyard/core';
import type { Step } from '../run/run-steps.ts';
import { commandText, mustRun, nodeProgram } from '../run/shell.ts';
import type { CellContext } from './cell-context.ts';

/** An image of this checkout. */
export interface CellImage {
  /** Name in `./dev image`. */
  readonly name: string;
  readonly args: readonly string[];
  /** App whose version its tag has. */
  readonly app: string;
  /** Kind's nodes need it; the others run beside the nodes. */
  readonly isForNodes: boolean;
}

/** Images that a cell needs. */
export function imagesOf({ cell }: Pick<CellContext, 'cell'>): readonly CellImage[] {
  const { backend } = cell;
  const agent = {
    name: `agent-${backend}`,
    args: ['agent', '--backend', backend],
    app: 'node-agent',
    isForNodes: true,
  };
  const conformance = { name: 'conformance', args: ['conformance'], app: 'conformance', isForNodes: true };
  const loadBalancer = ['load-balancer', 'kind-lb-controller'].map((name) => ({
    name,
    args: [name],
    app: 'kind-lb-controller',
    isForNodes: false,
  }));
  return [agent, conformance, ...(cell.loadBalancer === 'switchyard' ? loadBalancer : [])];
}

/** The tag that `./dev image` gives. */
export async function imageTag(checkout: string, { name, app }: CellImage): Promise<string> {
  const manifest = await readFile(join(checkout, 'apps', app, 'package.json'), 'utf8');
  return `switchyard/${name}:${(JSON.parse(manifest) as { readonly version: string }).version}`;
}

/** Builds each image once per call, for any number of cells. */
export function buildImages(context: CellContext): Step {
  return {
    name: 'build our images',
    timeout: seconds(1200),
    advice: 'build it by hand with ./dev image, as docs/operate/images.md says; without a registry add --local-base',
    run: async (signal) => {
      for (const image of imagesOf(context)) await buildImage(context, image, signal);
    },
  };
}

async function buildImage(context: CellContext, { name, args }: CellImage, signal: AbortSignal): Promise<void> {
  const { checkout, shell, isLocalBase, built } = context;
  const flags = isLocalBase ? ['--local-base'] : [];
  const program = nodeProgram(checkout, 'tools/images/image.ts', [...args, ...flags]);
  const command = { ...program, timeout: seconds(1200) };
  const key = commandText(command);
  if (built.has(key)) return;
  await mustRun(shell, command, `cannot build the image ${name}`, signal);
  built.add(key);
}

/** Puts images from the engine onto the cluster's nodes, which ask no registry for them. */
export function loadImages(context: CellContext): Step {
  const timeout = seconds(600);
  return {
    name: "load images onto the cluster's nodes",
    timeout,
    advice:
      'see whether the disk is full (docker system df), and that the image is there (docker image ls switchyard/*)',
    run: async (signal) => {
      const { shell, cluster, checkout } = context;
      const wanted = imagesOf(context).filter(({ isForNodes }) => isForNodes);
      const tags = await Promise.all(wanted.map((image) => imageTag(checkout, image)));
      const command = { file: 'kind', args: ['load', 'docker-image', ...tags, '--name', cluster], timeout };
      await mustRun(shell, command, `cannot load ${tags.join(', ')}`, signal);
    },
  };
}
