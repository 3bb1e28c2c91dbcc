// Any kube-proxy beside our modes: node main.ts --kube-proxy FILE ...; see --help. `./dev bench peers` runs it.
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { DataplaneError, HostError } from '@switchyard/core';
import { parsePeersOptions, peersHelp } from './options.ts';
import { markdownText, terminalText } from './report.ts';
import { runPeers } from './run-peers.ts';

async function main(args: readonly string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) return console.log(peersHelp);
  const options = await parsePeersOptions(args, process.env['INIT_CWD'] ?? process.cwd());
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new HostError('bench.stopped', `stopped by ${name}`)));
  const progress = (text: string): void => void process.stderr.write(`bench: ${text}\n`);
  const report = await runPeers(options, { labName: 'peers', version: commit(), progress }, stop.signal);
  console.log(terminalText(report));
  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(report, undefined, 2)}\n`);
  if (options.markdown !== undefined) await writeFile(options.markdown, markdownText(report));
}

/** Of this checkout; its working tree may differ from it. */
function commit(): string {
  try {
    const cwd = import.meta.dirname;
    return execFileSync('git', ['describe', '--always', '--dirty'], { cwd, encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  const isExpected = error instanceof DataplaneError;
  console.error(
    `bench: ${isExpected || !(error instanceof Error) ? String(isExpected ? error.message : error) : error.stack}`,
  );
  process.exitCode = 1;
}
