import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ConfigError, isExpected } from '@switchyard/core';
import { drainLosses, type Input, readCluster } from './drain.ts';
import { printLosses } from './print.ts';

const usage = `usage: drain --node NAME [--keep NAMESPACE/NAME]... [--json] [FILE]...

Which Services lose traffic while a node is drained? Reads what kubectl prints, from files or standard input:

  kubectl get services,endpointslices,nodes -A -o json | drain --node worker1

  --node NAME  the node to drain
  --keep NAMESPACE/NAME
               a Service whose pods stay on the node: those of DaemonSets and static pods
  --json       a list of objects instead of a table

Exit status: 0 no Service loses traffic, 1 some do, 2 wrong arguments or input.`;

/** Returns the exit status. */
function main(): number {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      node: { type: 'string' },
      keep: { type: 'string', multiple: true, default: [] },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  if (values.node === undefined) throw new ConfigError('drain.usage', `--node is missing\n\n${usage}`);
  const plan = { node: values.node, kept: values.keep };
  const losses = drainLosses(readCluster(inputs(positionals)), plan);
  process.stdout.write(values.json ? `${JSON.stringify(losses, undefined, 2)}\n` : printLosses(losses, plan.node));
  return losses.length === 0 ? 0 : 1;
}

function inputs(files: readonly string[]): readonly Input[] {
  if (files.length === 0) return [{ name: 'standard input', text: readFileSync(0, 'utf8') }];
  return files.map((name) => ({ name, text: readFileSync(name, 'utf8') }));
}

try {
  process.exitCode = main();
} catch (error) {
  // Core's errors, and those of Node for arguments and files, have a code; all others are defects of this program.
  if (!isExpected(error) && !(error instanceof Error && 'code' in error)) throw error;
  console.error(`drain: ${error.message}`);
  process.exitCode = 2;
}
