import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { nodeEndpoints, QuestionError } from './node-endpoints.ts';

const usage = `usage: node-endpoints --node NAME [FILE]

Which endpoints would a node use? Reads what kubectl prints, from FILE or standard input:

  kubectl get services,endpointslices,nodes -A -o yaml | node-endpoints --node worker1`;

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { node: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help === true) {
    console.log(usage);
  } else if (values.node === undefined || positionals.length > 1) {
    console.error(usage);
    process.exitCode = 2;
  } else {
    process.stdout.write(nodeEndpoints({ yaml: readFileSync(positionals[0] ?? 0, 'utf8'), node: values.node }));
  }
} catch (error) {
  if (!(error instanceof QuestionError) && !(error instanceof Error && 'code' in error)) throw error;
  console.error(`node-endpoints: ${error.message}`);
  process.exitCode = 1;
}
