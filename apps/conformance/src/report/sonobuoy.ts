import type { ReportFile } from '../model/report-file.ts';
import { junitXml } from './junit.ts';

/**
 * Leaves the result for Sonobuoy, whose worker waits for a file `done` with the path of what it shall collect: JUnit of a run, or else the
 * reason why there is none. Otherwise it would wait for its time limit.
 */
export async function leaveForSonobuoy(
  result: ReportFile | string,
  { folder, writeText }: { readonly folder: string; readonly writeText: (file: string, text: string) => Promise<void> },
): Promise<void> {
  const file = `${folder}/${typeof result === 'string' ? 'error.txt' : 'junit.xml'}`;
  await writeText(file, typeof result === 'string' ? `${result}\n` : junitXml(result));
  await writeText(`${folder}/done`, file);
}
