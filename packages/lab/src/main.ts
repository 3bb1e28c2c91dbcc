import { DataplaneError } from '@switchyard/core';
import { bringUp, describeLab, describeLabs, execInLab, takeDown } from './cli/commands.ts';
import { type LabCommand, parseLabCommand, type UpOptions, usage } from './cli/options.ts';
import { hostAddresses, hostNumbers } from './network-plan.ts';
import { nodeProgram } from './program-path.ts';

const interrupted = new AbortController();

try {
  process.exitCode = await run(parseLabCommand(process.argv.slice(2)));
} catch (error) {
  // A DataplaneError is one line that says what to do; any other error is a defect and keeps its stack.
  console.error(error instanceof DataplaneError ? `lab: ${error.message}` : error);
  process.exitCode = 1;
}

async function run(command: LabCommand): Promise<number> {
  switch (command.kind) {
    case 'help':
      console.log(usage);
      return 0;
    case 'up':
      return up(command.options);
    case 'down':
      for await (const name of takeDown(command.names, interrupted.signal)) console.log(`removed lab ${name}`);
      return 0;
    case 'list':
      console.log((await describeLabs()).join('\n'));
      return 0;
    case 'status':
      console.log((await describeLab(command.name)).join('\n'));
      return 0;
    case 'exec':
      return execInLab(command);
    case 'probe':
      return execInLab({ ...command, command: [process.execPath, ...nodeProgram('probe-agent'), ...command.words] });
  }
}

async function up(options: UpOptions): Promise<number> {
  process.once('SIGINT', () => interrupted.abort());
  const started = performance.now();
  const record = await bringUp(options, (text) => console.error(`lab: ${text}`), interrupted.signal);
  const name = options.name === 'demo' ? '' : ` --name ${options.name}`;
  console.error(`lab: ready after ${((performance.now() - started) / 1000).toFixed(1)} s. Try next:`);
  console.log(`export KUBECONFIG=${record.kubeconfig}`);
  const addresses = hostAddresses(hostNumbers.firstNode, options.ipFamilies);
  const node1 = addresses.IPv4 ?? addresses.IPv6;
  const next = [
    'kubectl get nodes -o wide',
    'kubectl apply -f packages/lab/examples/web.yaml',
    'kubectl get pods,services,endpointslices -o wide',
    ...(options.agents ? [`./dev lab probe${name} client http ${node1} 30080 --count 5`] : []),
    `./dev lab exec${name} node1 -- ip route`,
    `./dev lab status${name}`,
    `./dev lab down${name}`,
  ];
  for (const line of next) console.error(`  ${line}`);
  return 0;
}
