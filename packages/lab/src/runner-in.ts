import { type CommandRunner, createCommandRunner } from '@switchyard/host';
import type { LabHost } from './lab.ts';
import { namespacesRoot } from './names.ts';

/**
 * A runner whose programs enter a lab host's network namespace; by exec, so that the process id is the program's. iptables
 * has its own lock file there, so it does not wait for other programs of this machine.
 */
export function runnerIn(host: LabHost, folder: string): CommandRunner {
  const runner = createCommandRunner();
  const enter = [`--net=${namespacesRoot}/${host.namespace}`, '--'];
  const own = { XTABLES_LOCKFILE: `${folder}/${host.name}-xtables.lock` };
  return {
    run: (file, args, options) =>
      runner.run('nsenter', [...enter, file, ...args], { ...options, env: { ...own, ...options.env } }),
  };
}
