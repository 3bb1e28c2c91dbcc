import { HostError, seconds } from '@switchyard/core';
import { clusterLabel } from '../cell.ts';
import type { Step } from '../run/run-steps.ts';
import { mustRun, type Shell } from '../run/shell.ts';
import { type CellContext, kubectl } from './cell-context.ts';
import { imagesOf, imageTag } from './agent.ts';

export function controllerName(cluster: string): string {
  return `${cluster}-lb-controller`;
}

/** Log line of the controller when it has a cluster's Services. */
const servingLine = 'serving the cluster';

/** Runs our LoadBalancer controller as a container on kind's network, for this cluster alone. */
export function startLoadBalancer(context: CellContext): Step {
  const { shell, cluster, network, dockerSocket, checkout, clock } = context;
  const timeout = seconds(120);
  const name = controllerName(cluster);
  return {
    name: 'start the LoadBalancer controller',
    timeout,
    advice: `read its log, diagnostics/lb-controller.log; docs/operate/kind.md says what it needs`,
    run: async (signal) => {
      const image = imagesOf(context).find((one) => one.name === 'kind-lb-controller');
      if (image === undefined) return;
      // The host name is the beginning of what the controller writes as the holder of its Lease.
      const place = ['--name', name, '--hostname', name, '--label', `${clusterLabel}=${cluster}`, '--network', network];
      const socket = ['--volume', `${dockerSocket}:/var/run/docker.sock`];
      const program = [await imageTag(checkout, image), '--cluster', cluster, '--network', network];
      const args = ['run', '--detach', ...place, ...socket, ...(await apiVersion(shell, signal)), ...program];
      await mustRun(shell, { file: 'docker', args, timeout }, 'the controller did not start', signal);
      for (;;) {
        const logs = await shell.run({ file: 'docker', args: ['logs', name], timeout }, signal);
        if (shell.isDry || `${logs.stdout}${logs.stderr}`.includes(servingLine)) return;
        await refuseEnded(context, signal);
        await refuseOtherHolder(context, signal);
        await clock.sleep(seconds(1), signal);
      }
    },
  };
}

/** Default API version of the Docker CLI in our controller's image: Debian's, 20.10. */
const clientApi = '1.41';

/** Makes that CLI speak a newer version of the API, where the engine takes no older one: Docker 29 wants 1.44. */
export async function apiVersion(shell: Shell, signal: AbortSignal): Promise<readonly string[]> {
  const args = ['version', '--format', '{{.Server.MinAPIVersion}}'];
  const { stdout } = await shell.run({ file: 'docker', args, timeout: seconds(30) }, signal);
  const [least] = /^\d+\.\d+$/m.exec(stdout.trim()) ?? [];
  if (least === undefined || least.localeCompare(clientApi, 'en', { numeric: true }) <= 0) return [];
  return ['--env', `DOCKER_API_VERSION=${least}`];
}

/** Another controller that serves the cluster keeps ours waiting for its Lease, until the step's time is over. */
async function refuseOtherHolder(context: CellContext, signal: AbortSignal): Promise<void> {
  const { shell, cluster } = context;
  const args = ['-n', 'kube-system', 'get', 'lease', 'switchyard-lb', '--ignore-not-found'];
  const output = ['-o', 'jsonpath={.spec.holderIdentity}'];
  const command = { ...kubectl(context, ...args, ...output), timeout: seconds(30) };
  const { stdout, exitCode } = await shell.run(command, signal);
  const holder = stdout.trim();
  if (exitCode !== 0 || holder === '' || holder.startsWith(`${controllerName(cluster)}_`)) return;
  const what = `another controller, ${holder}, holds the Lease kube-system/switchyard-lb of ${cluster}`;
  throw new HostError('e2e.lease', `${what}; stop that controller, or restrict it by --cluster to clusters of its own`);
}

async function refuseEnded({ shell, cluster }: CellContext, signal: AbortSignal): Promise<void> {
  const name = controllerName(cluster);
  const args = ['inspect', '--format', '{{.State.Status}} {{.State.ExitCode}}', name];
  const state = await mustRun(shell, { file: 'docker', args, timeout: seconds(30) }, 'it is gone', signal);
  if (!/^(exited|dead)/.test(state)) return;
  const { stdout, stderr } = await shell.run(
    { file: 'docker', args: ['logs', '--tail', '5', name], timeout: seconds(30) },
    signal,
  );
  throw new HostError('e2e.lb', `the controller ended (${state.trim()}) and said: ${`${stdout}${stderr}`.trim()}`);
}
