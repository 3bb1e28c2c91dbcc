import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../workspace.ts';
import { dashboard } from './dashboard.ts';

/** Where the dashboard is checked in. */
export const dashboardFile: string = join(root, 'deploy/grafana/switchyard-dashboard.json');

if (import.meta.main) {
  mkdirSync(dirname(dashboardFile), { recursive: true });
  writeFileSync(dashboardFile, `${JSON.stringify(dashboard(), undefined, 2)}\n`);
  console.log(dashboardFile);
}
