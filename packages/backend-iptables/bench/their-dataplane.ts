import type { ForwardingTable } from '@switchyard/core';
import { CommandError, type CommandRunner } from '@switchyard/host';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { type Dataplane, patience } from './dataplane.ts';
import { kubeProxyContent, kubeProxyJumps } from './kube-proxy-content.ts';
import { recordingRunner } from './recording-runner.ts';
import type { Place } from './stage.ts';

const podCidr = '10.244.0.0/16';

/** kube-proxy's content, into a network namespace without a rule. */
export async function openTheirs(place: Place, variant: IptablesVariant, signal: AbortSignal): Promise<Dataplane> {
  const runner = recordingRunner(place.runner);
  let table: ForwardingTable | undefined;
  const restore = (stdin: string): Promise<void> => feed(runner, variant, stdin, signal);
  await restore(kubeProxyJumps);
  runner.taken();
  return {
    async load(given) {
      table = given;
      const start = performance.now();
      try {
        await restore(kubeProxyContent(given, podCidr));
      } catch (error) {
        if (error instanceof CommandError && error.failure === 'timedOut') return undefined;
        throw error;
      }
      return performance.now() - start;
    },
    async change(service) {
      if (table === undefined) throw new Error('nothing was loaded');
      await restore(kubeProxyContent(table, podCidr, [service]));
    },
    taken: () => runner.taken(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** `iptables-restore` with kube-proxy's arguments. */
async function feed(
  runner: CommandRunner,
  variant: IptablesVariant,
  stdin: string,
  signal: AbortSignal,
): Promise<void> {
  const args = ['-w', '5', '--noflush', '--counters'];
  const result = await runner.run(`iptables-${variant}-restore`, args, { stdin, timeout: patience, signal });
  if (result.exitCode !== 0) throw new Error(`kube-proxy's content was refused: ${result.stderr}`);
}
