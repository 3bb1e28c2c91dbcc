import type { Cell } from '../cell.ts';
import type { LabCell } from '../lab-cell.ts';

/**
 * The text of `e2e/project.json`: one nx target per cell, named as the cell, so that nx calls it `e2e:<cell>`. A generated file instead of
 * an nx plugin: every nx command would have to load a plugin, and would fail with it.
 */
export function projectJson(cells: readonly (Cell | LabCell)[]): string {
  const targets = Object.fromEntries(cells.map(({ id }) => [id, targetOf(id)]));
  return `${JSON.stringify({ name: 'e2e', targets }, null, 2)}\n`;
}

function targetOf(id: string): object {
  return {
    command: `node --conditions=@switchyard/source e2e/src/main.ts ${id}`,
    options: { cwd: '.' },
    cache: false,
    parallelism: false,
    dependsOn: [{ projects: ['node-agent', 'kind-lb-controller', 'conformance'], target: 'bundle' }],
  };
}
