import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../workspace.ts';
import { dashboard } from './dashboard.ts';
import { dashboardPicture } from './picture.ts';
import { rows } from './rows.ts';

/** Where the dashboard is checked in. */
export const dashboardFile: string = join(root, 'deploy/grafana/switchyard-dashboard.json');

/** Where its picture for the documentation is checked in. */
export const pictureFile: string = join(root, 'docs/images/dashboard.svg');

if (import.meta.main) {
  mkdirSync(dirname(dashboardFile), { recursive: true });
  writeFileSync(dashboardFile, `${JSON.stringify(dashboard(), undefined, 2)}\n`);
  writeFileSync(pictureFile, dashboardPicture(rows));
  console.log(`${dashboardFile}\n${pictureFile}`);
}
