import { parseArgs } from 'node:util';
import { runScript } from '../script.ts';
import { renderHelm } from './helm.ts';
import { type Overlay, overlays, renderKustomize } from './kustomize.ts';

const usage = `usage: node tools/deploy/render.ts OVERLAY
       node tools/deploy/render.ts helm [--values JSON] [--name NAME] [--namespace NAMESPACE]

Prints the Kubernetes objects as a JSON list. Overlays: ${overlays.join(', ')}.`;

async function main(stop: AbortSignal): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { values: { type: 'string' }, name: { type: 'string' }, namespace: { type: 'string' } },
  });
  const [what, ...others] = positionals;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(600_000)]);
  if (what === undefined || others.length > 0) throw new Error(usage);
  if (what === 'helm') {
    const { name = 'switchyard', namespace = 'kube-system' } = values;
    const given = JSON.parse(values.values ?? '{}') as object;
    return console.log(JSON.stringify((await renderHelm({ name, namespace, values: given }, signal)).objects));
  }
  if (!overlays.includes(what as Overlay)) throw new Error(usage);
  console.log(JSON.stringify(await renderKustomize(what as Overlay, signal)));
}

await runScript(main);
