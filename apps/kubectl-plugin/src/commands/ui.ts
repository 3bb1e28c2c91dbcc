import type { AddressInfo } from 'node:net';
import { aborted, HostError } from '@switchyard/core';
import { createUiServer } from '../ui/server.ts';
import type { CommandContext, ExitStatus } from './context.ts';

/** `ui`: serves the page on loopback until ^C. */
export async function uiCommand(
  { config, findAgents, print, warn }: CommandContext,
  signal: AbortSignal,
): Promise<ExitStatus> {
  using found = await findAgents();
  const server = createUiServer({ agents: found.agents, warn }, signal);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', (cause: Error) => {
    reject(
      new HostError('ui.listen', `cannot listen on 127.0.0.1:${config.port}: ${cause.message}; set another --port`, {
        cause,
      }),
    );
  });
  server.listen(config.port, '127.0.0.1', resolve);
  await promise;
  print(`http://127.0.0.1:${(server.address() as AddressInfo).port}/ shows ${found.agents.length} nodes; ^C ends it\n`);
  await aborted(signal);
  return 0;
}
