import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** One Kubernetes object of a rendered manifest; tests look wherever they like. */
export type Rendered = ReturnType<typeof JSON.parse>;

const renderer = fileURLToPath(new URL('../../../../../tools/deploy/render.ts', import.meta.url));

/** Objects of an overlay of deploy/kustomize, rendered by the real kubectl. */
export async function renderOverlay(overlay: string): Promise<readonly Rendered[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [renderer, overlay]);
  return JSON.parse(stdout) as readonly Rendered[];
}

/** The only object of a kind. */
export function objectOf(objects: readonly Rendered[], kind: string): Rendered {
  const found = objects.filter((object) => object.kind === kind);
  if (found.length !== 1) throw new Error(`wanted one ${kind}, found ${found.length}`);
  return found[0];
}
