import { findBoundaryFaults } from './boundaries.ts';
import { findHouseRuleFaults } from './house-rules.ts';
import {
  countFolders,
  densityOf,
  describeHit,
  judge,
  linesChanged,
  lowered,
  readAllowed,
  writeAllowed,
} from './words.ts';

// Rules that oxlint cannot express: which package may import which, which ambient names are allowed where, and plain words.
// `--write` first lowers the numbers of words.json; `--words [PATH...]` only lists the hits of the word list.

function listWords(paths: readonly string[]): void {
  const counts = [...countFolders(paths).values()];
  const hits = counts.flatMap((count) => count.hits);
  const proseLines = counts.reduce((sum, count) => sum + count.proseLines, 0);
  for (const hit of hits) console.log(describeHit(hit));
  const density = densityOf({ hits, proseLines }).toFixed(1);
  console.log(
    `${hits.length} hits in ${proseLines} lines of prose: ${density} per 1,000; the goal is ${readAllowed().goal}`,
  );
}

function lint(): void {
  const counts = countFolders();
  const { faults: wordFaults, advice } = judge(counts, readAllowed(), linesChanged);
  for (const text of advice) console.log(text);
  const faults = [...findBoundaryFaults(), ...findHouseRuleFaults(), ...wordFaults];
  for (const fault of faults) console.error(fault);
  if (faults.length === 0) return;
  console.error(
    `house rules: ${faults.length} fault(s); the rules are in ARCHITECTURE.md, those of words in CONTRIBUTING.md`,
  );
  process.exitCode = 1;
}

const [mode, ...paths] = process.argv.slice(2);
if (mode === '--words') listWords(paths);
else {
  if (mode === '--write') writeAllowed(lowered(countFolders(), readAllowed()));
  lint();
}
