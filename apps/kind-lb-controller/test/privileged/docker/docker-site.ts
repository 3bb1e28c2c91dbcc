import {
  type IpAddress,
  noopLogger,
  parseIp,
  parsePort,
  type Protocol,
  serviceKey,
  systemClock,
} from '@switchyard/core';
import {
  createLab,
  type DockerEngine,
  dockerPackages,
  joinDockerNetwork,
  type Lab,
  startDockerEngine,
} from '@switchyard/lab';
import { debianRoot, machineArchitecture } from '../../../../../tools/debian/debian-root.ts';
import { buildImage, buildLocalBase } from '../../../../../tools/images/build-image.ts';
import { DockerCli } from '../../../src/docker/docker-cli.ts';
import { DockerRuntime, type DockerRuntimeOptions } from '../../../src/docker/docker-runtime.ts';
import { EngineEvents } from '../../../src/docker/engine-events.ts';
import type { TargetChange } from '../../../src/runtime/runtime.ts';
import type { LoadBalancerId, LoadBalancerSpec, Target } from '../../../src/spec/load-balancer-spec.ts';
import { exampleSpec, nodeTargets } from '../../../src/testing/example-specs.ts';

/** Name of the load balancer's image on a site. */
export const siteImage = 'switchyard/load-balancer:test';

/** A Docker Engine in a lab's load-balancer host, with a network as kind makes it, to which the lab's hosts belong. */
export interface DockerSite extends AsyncDisposable {
  readonly lab: Lab;
  readonly engine: DockerEngine;
  /** A runtime on the engine, as a controller has it. */
  newRuntime(changes?: Partial<DockerRuntimeOptions>): RuntimeUnderTest;
  /** The standard output of the Docker CLI; throws if it fails. */
  docker(...args: readonly string[]): Promise<string>;
}

/** A runtime, and what it told. */
export interface RuntimeUnderTest extends AsyncDisposable {
  readonly runtime: DockerRuntime;
  readonly disturbed: (readonly LoadBalancerId[] | 'all')[];
  readonly changes: TargetChange[];
}

/** Starts everything. `name` is a lab's name that no other test has. */
export async function startDockerSite(name: string, signal: AbortSignal): Promise<DockerSite> {
  await using stack = new AsyncDisposableStack();
  const programs = await debianRoot({ ...dockerPackages, signal });
  const lab = stack.use(await createLab({ name, nodes: 2, ipFamilies: ['IPv4', 'IPv6'] }, signal));
  const engine = stack.use(await startDockerEngine({ lab, host: lab.loadBalancer, programs }, signal));
  stack.use(await joinDockerNetwork({ lab, host: lab.loadBalancer, engine }, signal));
  const owned = stack.move();
  return {
    lab,
    engine,
    newRuntime: (changes = {}) => newRuntime(engine, changes),
    async docker(...args) {
      const { exitCode, stdout, stderr } = await engine.cli(args);
      if (exitCode !== 0) throw new Error(`docker ${args.join(' ')}: ${stderr}`);
      return stdout.trim();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Builds `siteImage` on the site's engine, from this checkout's bundle. */
export async function buildSiteImage({ engine }: DockerSite, signal: AbortSignal): Promise<void> {
  const common = { architecture: machineArchitecture(), docker: engine.command, signal };
  const { tag: base } = await buildLocalBase({ ...common, tag: 'base:test' });
  await buildImage({ ...common, base, image: 'load-balancer', tag: siteImage });
}

function newRuntime(engine: DockerEngine, changes: Partial<DockerRuntimeOptions>): RuntimeUnderTest {
  const { file: program, env } = engine.command;
  const disturbed: RuntimeUnderTest['disturbed'] = [];
  const targetChanges: TargetChange[] = [];
  const cli = new DockerCli({ program, env });
  const shared = { cli, clock: systemClock, log: noopLogger };
  const events = new EngineEvents({ ...shared, random: Math.random });
  const listener = {
    onDisturbed: (which: readonly LoadBalancerId[] | 'all') => void disturbed.push(which),
    onTargetChange: (change: TargetChange) => void targetChanges.push(change),
  };
  const fixed = { network: 'kind', image: siteImage, pool: [], publishOn: undefined } as const;
  const flags = { isDiscovered: true, followsTargets: false };
  const runtime = new DockerRuntime({ ...shared, events, listener, ...fixed, ...flags, ...changes });
  return {
    runtime,
    disturbed,
    changes: targetChanges,
    async [Symbol.asyncDispose]() {
      await runtime[Symbol.asyncDispose]();
      await events[Symbol.asyncDispose]();
    },
  };
}

/** One Service port and the port its targets listen on. */
export interface SitePort {
  readonly port: number;
  readonly targetPort?: number;
  readonly protocol?: Protocol;
}

/**
 * The load balancer of Service `default/NAME` in cluster `c`, with an address of each family that ends with `number`. Its targets are the lab's
 * nodes, checked on port 32080.
 */
export function siteSpec(name: string, number: number, ports: readonly SitePort[] = [{ port: 80 }]): LoadBalancerSpec {
  const addresses: readonly IpAddress[] = [`172.18.255.${number}`, `fd00:172:18:0:ffff:ffff:ffff:${number}`].map(
    parseIp,
  );
  return exampleSpec(name, {
    id: { cluster: 'c', service: serviceKey('default', name) },
    addresses,
    ports: ports.map(({ port, targetPort = 30080, protocol = 'TCP' }) => ({
      port: parsePort(port),
      protocol,
      addresses,
      targets: targets(targetPort),
    })),
  });
}

function targets(port: number): readonly Target[] {
  return (['IPv4', 'IPv6'] as const).flatMap((ipFamily) => nodeTargets(port, { ipFamily }));
}
