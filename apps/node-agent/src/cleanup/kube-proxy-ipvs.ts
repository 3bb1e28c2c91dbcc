import { asError, millis } from '@switchyard/core';
import { commandFailed, type CommandRunner, isProgramMissing, type KernelFiles } from '@switchyard/host';
import { nothingRemoved, type Removal } from './removal.ts';

/** Access to the state that the ipvs mode of kube-proxy left. */
export interface IpvsHost {
  readonly runner: CommandRunner;
  readonly files: KernelFiles;
}

/** kube-proxy's dummy interface, which holds every Service address. */
const dummy = 'kube-ipvs0';

/** Sets of the ipvs mode, for IPv4 and, with `6-`, for IPv6. Other programs have sets that begin with KUBE- as well. */
const ipsetName = new RegExp(
  '^KUBE-(?:6-)?(?:LOOP-BACK|CLUSTER-IP|EXTERNAL-IP(?:-LOCAL)?|LOAD-BALANCER(?:-FW|-LOCAL|-SOURCE-CIDR|-SOURCE-IP)?|' +
    'LOAD-BALANCER-SOURCE-(?:CIDR|IP)|NODE-PORT(?:-LOCAL)?-(?:TCP|UDP|SCTP-HASH)|HEALTH-CHECK-NODE-PORT|IPVS-IPS)$',
);

/**
 * Removes the state of the ipvs mode: virtual servers on the addresses of its dummy interface, the interface, and the ipsets.
 * Flows through ipvs end with their virtual server. Throws `HostError`.
 */
export async function removeKubeProxyIpvs(host: IpvsHost, signal: AbortSignal): Promise<Removal> {
  const removed: string[] = [];
  const skipped: string[] = [];
  const failures: Error[] = [];
  const isThere = interfaces(host.files).includes(dummy);
  const steps = [
    ...(isThere ? [() => removeVirtualServers(host, signal), () => removeDummy(host, signal)] : []),
    () => removeIpsets(host, signal),
  ];
  for (const step of steps) {
    try {
      removed.push(...(await step()));
    } catch (error) {
      signal.throwIfAborted();
      if (isProgramMissing(error)) skipped.push((error as Error).message.replace(/^cannot run /, 'ipvs mode: '));
      else failures.push(asError(error));
    }
  }
  return { ...nothingRemoved, removed, skipped, failures };
}

function interfaces(files: KernelFiles): readonly string[] {
  const table = files.read('/proc/net/dev') ?? '';
  return table.split('\n').flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? []);
}

async function removeVirtualServers(host: IpvsHost, signal: AbortSignal): Promise<readonly string[]> {
  const addresses = new Set(
    [
      ...(await run(host, 'ip', ['-o', 'address', 'show', 'dev', dummy], signal)).matchAll(/ inet6? ([0-9a-f.:]+)\//g),
    ].map(([, address]) => address),
  );
  const saved = await run(host, 'ipvsadm', ['-S', '-n'], signal);
  const removed: string[] = [];
  for (const [, protocol = '', target = ''] of saved.matchAll(/^-A (-[tu]|--sctp-service) (\S+)/gm)) {
    const address = target.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
    if (!addresses.has(address)) continue;
    await run(host, 'ipvsadm', ['-D', protocol, target], signal);
    removed.push(`ipvs virtual server ${target}`);
  }
  return removed;
}

async function removeDummy(host: IpvsHost, signal: AbortSignal): Promise<readonly string[]> {
  await run(host, 'ip', ['link', 'delete', dummy], signal);
  return [`interface ${dummy}`];
}

/** Removes the ipsets. The rules that use them must be removed before. */
async function removeIpsets(host: IpvsHost, signal: AbortSignal): Promise<readonly string[]> {
  const names = (await run(host, 'ipset', ['list', '-n'], signal)).split('\n').filter((name) => ipsetName.test(name));
  for (const name of names) await run(host, 'ipset', ['destroy', name], signal);
  return names.map((name) => `ipset ${name}`);
}

async function run({ runner }: IpvsHost, file: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const result = await runner.run(file, args, { timeout: millis(30_000), signal });
  if (result.exitCode === 0) return result.stdout;
  throw commandFailed(`cannot remove what the ipvs mode of kube-proxy left`, { file, args }, result);
}
