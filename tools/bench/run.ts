import { execa } from 'execa';
import { root, workspaces } from '../workspace.ts';

// `./dev bench` runs the bench target of every package that has one; `./dev bench core lab` only the named ones.

const benches = workspaces()
  .filter((workspace) => workspace.targets.includes('bench'))
  .map((workspace) => workspace.folder.slice(workspace.folder.indexOf('/') + 1));

async function main(names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !benches.includes(name));
  if (names[0] === 'list' || names[0] === '--help') {
    console.log(`benches: ${benches.join(', ')}`);
    return;
  }
  if (unknown.length > 0) {
    console.error(`bench: there is no bench '${unknown.join("', '")}'; there are: ${benches.join(', ')}`);
    process.exitCode = 1;
    return;
  }
  for (const name of names.length > 0 ? names : benches) {
    console.log(`\n== ${name}`);
    const result = await execa('nx', ['run', `${name}:bench`, '--output-style=stream'], {
      cwd: root,
      reject: false,
      stdio: 'inherit',
    });
    if (result.exitCode !== 0) process.exitCode = 1;
  }
}

await main(process.argv.slice(2));
