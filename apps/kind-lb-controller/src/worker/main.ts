import { text } from 'node:stream/consumers';
import { messageOf, millis, seconds, systemClock } from '@switchyard/core';
import { createCommandRunner, createLogger, runApp } from '@switchyard/host';
import { newInterfaceAddresses } from '../kernel/interface-addresses.ts';
import { newTargetRoutes } from '../kernel/target-routes.ts';
import { appliedFile, containerFiles } from './container-files.ts';
import { containerMaster } from './container-master.ts';
import { ownAddresses } from './own-addresses.ts';
import { parseRequest } from './parse-request.ts';
import type { WorkerAnswer } from './protocol.ts';
import { runWorker } from './worker.ts';
import { lockWorkers } from './worker-lock.ts';

/** Name of a container's interface, set by the engine. */
const interfaceName = 'eth0';
const lockLimit = seconds(30);

/** Never rejects for a failure: that is an answer too. */
async function work(signal: AbortSignal): Promise<WorkerAnswer> {
  const log = createLogger({ format: 'json', level: 'info' });
  const runner = createCommandRunner();
  const where = { runner, netns: undefined, interfaceName, clock: systemClock };
  try {
    const request = parseRequest(await text(process.stdin));
    await using _ = await lockWorkers('switchyard-lb-worker', { clock: systemClock, limit: lockLimit }, signal);
    const host = {
      files: containerFiles,
      appliedFile,
      program: 'haproxy',
      master: containerMaster(containerFiles.masterSocket),
      addresses: newInterfaceAddresses({ ...where, pool: 'everyHostAddress', logger: log }),
      routes: newTargetRoutes(where),
      openKernel: async () => {
        const { newKernelForwarder } = await import('../kernel/kernel-forwarder.ts');
        return newKernelForwarder({ ...where, forwarding: 'check', logger: log });
      },
      ownAddresses: () => ownAddresses(interfaceName),
      runner,
      clock: systemClock,
      log,
    };
    return await runWorker(request, host, signal);
  } catch (error) {
    log.error('the worker failed', { error });
    return { status: 'failed', reason: 'WorkerFailed', message: messageOf(error).replaceAll(/\s*\n\s*/g, ' | ') };
  }
}

await runApp({
  name: 'switchyard-lb-worker',
  exitGrace: millis(500),
  main: async (signal) => {
    const answer = await work(signal);
    process.stdout.write(`${JSON.stringify(answer)}\n`);
    if (answer.status === 'failed') process.exitCode = 1;
  },
});
