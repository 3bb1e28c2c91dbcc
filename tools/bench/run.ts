import { join } from 'node:path';
import { execa } from 'execa';
import { root, workspaces } from '../workspace.ts';
import { benchNames, describeMachine, findBenches, selectBenches, splitArguments } from './benches.ts';

// `./dev bench` runs every bench target; `./dev bench core lab` only the named ones, `./dev bench nftables` a suite,
// `./dev bench iptables --quick` hands `--quick` to each bench of it. `./dev bench peers` is a program of its own.

const peersProgram = 'packages/rollout/bench/peers/main.ts';

/** `./dev bench peers`: any kube-proxy beside our modes. Its files are relative to where the command was typed. */
async function comparePeers(words: readonly string[]): Promise<void> {
  const isHelp = words.includes('--help') || words.includes('-h');
  if (!isHelp) await execa('nx', ['run', 'node-agent:bundle'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  const args = ['--conditions=@switchyard/source', join(root, peersProgram), '--machine', describeMachine(), ...words];
  const result = await execa(process.execPath, args, { reject: false, stdio: 'inherit' });
  if (result.exitCode !== 0) process.exitCode = 1;
}

async function main(words: readonly string[]): Promise<void> {
  if (words[0] === 'peers') return comparePeers(words.slice(1));
  const { names, options } = splitArguments(words);
  const benches = findBenches(workspaces());
  const known = benchNames(benches);
  const unknown = names.filter((name) => !known.includes(name));
  if (names[0] === 'list' || words[0] === '--help') {
    console.log(`benches: ${known.join(', ')}; with a kube-proxy beside them: peers (see ./dev bench peers --help)`);
    return;
  }
  if (unknown.length > 0) {
    console.error(`bench: there is no bench '${unknown.join("', '")}'; there are: ${known.join(', ')}`);
    process.exitCode = 1;
    return;
  }
  console.log(`machine: ${describeMachine()}`);
  for (const { name, target } of selectBenches(names, benches)) {
    console.log(`\n== ${name}`);
    const result = await execa('nx', ['run', target, '--output-style=stream', ...options], {
      cwd: root,
      reject: false,
      stdio: 'inherit',
    });
    if (result.exitCode !== 0) process.exitCode = 1;
  }
}

await main(process.argv.slice(2));
