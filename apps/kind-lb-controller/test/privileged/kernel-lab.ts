import {
  type IpAddress,
  type IpFamily,
  ipFamilies,
  noopLogger,
  parseIp,
  parsePort,
  type Protocol,
  systemClock,
} from '@switchyard/core';
import { until } from '@switchyard/core/testing';
import { createCommandRunner } from '@switchyard/host';
import {
  createLab,
  createProber,
  type Lab,
  type LabHost,
  type Prober,
  type ProbeRequest,
  type ProbeResult,
  startEchoServer,
  liftIcmpLimits,
} from '@switchyard/lab';
import { type KernelForwarder, newKernelForwarder } from '../../src/kernel/kernel-forwarder.ts';
import type { LoadBalancerSpec, PortSpec, Target } from '../../src/spec/load-balancer-spec.ts';
import type { TargetHealth } from '../../src/spec/target-health.ts';
import { exampleSpec } from '../../src/testing/example-specs.ts';

export const { signal } = new AbortController();

/** The virtual addresses of every load balancer here. */
export const vip: Readonly<Record<IpFamily, IpAddress>> = {
  IPv4: parseIp('172.18.0.200'),
  IPv6: parseIp('fd00:172:18::200'),
};

/** Where nodes listen, TCP and UDP. */
export const echoPort = 8080;

/** A lab whose load-balancer host has the virtual addresses and whose nodes echo. */
export interface KernelLab extends AsyncDisposable {
  readonly lab: Lab;
  readonly client: Prober;
  /** Names of the nodes whose checks pass. */
  up: readonly string[];
  readonly health: TargetHealth;
  /** A new one each time, as in a new process. */
  openForwarder(): KernelForwarder;
  /** Applies with a forwarder of its own. */
  apply(...specs: readonly LoadBalancerSpec[]): Promise<'applied' | 'unchanged'>;
}

/** `name` as for `createLab`. */
export async function createKernelLab(name: string, nodes: number): Promise<KernelLab> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await createLab({ name, nodes, ipFamilies }, signal));
  for (const node of lab.nodes) startEchoServer(node, { pod: node.name, tcp: [echoPort], udp: [echoPort] });
  const { loadBalancer } = lab;
  await liftIcmpLimits(loadBalancer);
  await run(loadBalancer, 'ip', ['addr', 'add', `${vip.IPv4}/32`, 'dev', 'eth0']);
  await run(loadBalancer, 'ip', ['addr', 'add', `${vip.IPv6}/128`, 'dev', 'eth0', 'nodad', 'preferred_lft', '0']);
  const client = stack.use(await createProber(lab.client, signal));
  for (const { addresses } of lab.nodes) {
    await until('the echo servers', async () => {
      const results = await Promise.all(
        ipFamilies.map((family) =>
          client.probe({ protocol: 'udp', address: addresses[family] ?? '', port: echoPort, timeout: 200 }),
        ),
      );
      return results.every(({ status }) => status === 'answered');
    });
  }
  const owned = stack.move();
  const kernelLab: KernelLab = {
    lab,
    client,
    up: lab.nodes.map((node) => node.name),
    health: { isUp: (_, target) => kernelLab.up.includes(target.node) },
    openForwarder: () =>
      newKernelForwarder({
        runner: createCommandRunner(),
        netns: loadBalancer.namespace,
        interfaceName: 'eth0',
        forwarding: 'set',
        clock: systemClock,
        logger: noopLogger,
      }),
    async apply(...specs) {
      await using forwarder = kernelLab.openForwarder();
      return await forwarder.apply({ specs, health: kernelLab.health, ownAddresses: [] }, signal);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  return kernelLab;
}

/** The nodes as targets, both families; `port` is theirs. */
export function targetsOf(nodes: readonly LabHost[], port: number, draining?: string): readonly Target[] {
  return ipFamilies.flatMap((family) =>
    nodes.map((node) => {
      const address = parseIp(node.addresses[family] ?? '');
      const check = { address, port: parsePort(10256), path: '/healthz' };
      const how = node.name === draining ? 'serving' : 'no';
      return { name: node.name, node: node.name, address, port: parsePort(port), check, draining: how };
    }),
  );
}

/** One port on both virtual addresses. */
export function portOn(port: number, protocol: Protocol, targets: readonly Target[]): PortSpec {
  return { port: parsePort(port), protocol, addresses: ipFamilies.map((family) => vip[family]), targets };
}

/** A load balancer with these ports. */
export function specWith(ports: readonly PortSpec[], changes: Partial<LoadBalancerSpec> = {}): LoadBalancerSpec {
  return exampleSpec('echo', { ports, ...changes });
}

/** Who answered each of `count` attempts, side by side; how it ended for those without an answer. */
export async function answersOf(prober: Prober, request: ProbeRequest, count: number): Promise<readonly string[]> {
  const results = await Promise.all(Array.from({ length: count }, () => prober.probe(request)));
  return results.map(answerOf);
}

/** Who answered, or how it ended. */
export function answerOf(result: ProbeResult): string {
  return result.status === 'answered' ? (result.by ?? 'somebody') : result.status;
}

/** Runs a program in a lab host; throws when it fails. */
export async function run(host: LabHost, file: string, args: readonly string[], stdin?: string): Promise<string> {
  const result = await host.run(file, args, stdin === undefined ? {} : { stdin });
  if (result.exitCode !== 0) throw new Error(`${file} ${args.join(' ')} in ${host.name}: ${result.stderr}`);
  return result.stdout;
}
