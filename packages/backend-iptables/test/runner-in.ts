import { type CommandRunner, createCommandRunner } from '@switchyard/host';
import type { LabHost } from '@switchyard/lab';

/**
 * A runner whose programs enter a lab host's network namespace; by exec, so that the process id is the program's. iptables
 * has a lock file there of its own: nobody else on this machine is waited for.
 */
export function runnerIn(host: LabHost, folder: string): CommandRunner {
  const runner = createCommandRunner();
  const enter = [`--net=/run/netns/${host.namespace}`, '--'];
  const own = { XTABLES_LOCKFILE: `${folder}/${host.name}-xtables.lock` };
  return {
    run: (file, args, options) =>
      runner.run('nsenter', [...enter, file, ...args], { ...options, env: { ...own, ...options.env } }),
  };
}
