/*
 * Loaded into an agent that runs from its sources (node --import). At each SIGUSR2 it writes which files of this repository
 * executed a function since the last one, as a JSON list of paths, to $EXECUTED_FILES with a number behind it.
 */
import { Session } from 'node:inspector';
import { renameSync, writeFileSync } from 'node:fs';
import { env } from 'node:process';

const root = new URL('../../../../', import.meta.url).href;
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

let count = 0;
process.on('SIGUSR2', () => {
  session.post('Profiler.takePreciseCoverage', (error, report) => {
    if (error !== null) throw error;
    const files = report.result
      .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
      .filter(({ url }) => url.startsWith(root) && !url.includes('/node_modules/') && url !== import.meta.url)
      .map(({ url }) => url.slice(root.length));
    const to = `${env['EXECUTED_FILES']}.${count++}`;
    writeFileSync(`${to}.part`, JSON.stringify(files.toSorted()));
    renameSync(`${to}.part`, to);
  });
});
