import { type IpAddress, noopLogger, parseIp, serviceKey, systemClock, parsePort } from '@switchyard/core';
import { createLab, type DockerEngine, dockerPackages, type Lab, startDockerEngine } from '@switchyard/lab';
import { debianRoot } from '../../../../../tools/debian/debian-root.ts';
import { DockerCli } from '../../../src/docker/docker-cli.ts';
import { DockerRuntime, type DockerRuntimeOptions } from '../../../src/docker/docker-runtime.ts';
import { EngineEvents } from '../../../src/docker/engine-events.ts';
import type { TargetChange } from '../../../src/runtime/runtime.ts';
import type { LoadBalancerId, LoadBalancerSpec } from '../../../src/spec/load-balancer-spec.ts';
import { exampleSpec, nodeTargets } from '../../../src/testing/example-specs.ts';
import { handImage, importHandImage } from './hand-image.ts';

/** A Docker Engine of its own with a network as kind makes it, and an image for load balancers. */
export interface DockerSite extends AsyncDisposable {
  readonly lab: Lab;
  readonly engine: DockerEngine;
  /** A runtime on the engine, as a controller has it. */
  newRuntime(changes?: Partial<DockerRuntimeOptions>): RuntimeUnderTest;
  /** The standard output of the Docker CLI; throws if it fails. */
  docker(...args: readonly string[]): Promise<string>;
  /** Addresses on the container's eth0. */
  addressesIn(container: string): Promise<readonly string[]>;
}

/** A runtime, and what it told. */
export interface RuntimeUnderTest extends AsyncDisposable {
  readonly runtime: DockerRuntime;
  readonly disturbed: (readonly LoadBalancerId[] | 'all')[];
  readonly changes: TargetChange[];
}

/** Starts everything. `lab` is a name that no other test has. */
export async function startDockerSite(name: string, signal: AbortSignal): Promise<DockerSite> {
  const programs = await debianRoot({ ...dockerPackages, signal });
  const lab = await createLab({ name, nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal);
  try {
    const engine = await startDockerEngine({ lab, host: lab.nodes[0]!, programs }, signal);
    await importHandImage(engine, lab.diskFolder);
    const docker = async (...args: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await engine.cli(args);
      if (exitCode !== 0) throw new Error(`docker ${args.join(' ')}: ${stderr}`);
      return stdout.trim();
    };
    await docker('network', 'create', '--ipv6', '--subnet', 'fd00:172:30::/64', '--subnet', '172.30.0.0/16', 'kind');
    return {
      lab,
      engine,
      docker,
      newRuntime: (changes = {}) => newRuntime(engine, changes),
      addressesIn: async (container) => {
        const text = await docker('exec', container, 'ip', '-o', 'addr', 'show', 'dev', 'eth0', 'scope', 'global');
        return [...text.matchAll(/ inet6? (\S+)/g)].map(([, address = '']) => address).sort();
      },
      [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose](),
    };
  } catch (error) {
    await lab[Symbol.asyncDispose]();
    throw error;
  }
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
  const fixed = { network: 'kind', image: handImage, pool: [], publishOn: undefined } as const;
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

/** The load balancer of Service `default/NAME` in cluster `c`, with an address of each family that ends with `number`. */
export function siteSpec(name: string, number: number, ports: readonly number[] = [80]): LoadBalancerSpec {
  const addresses: readonly IpAddress[] = [`172.30.255.${number}`, `fd00:172:30:0:ffff:ffff:ffff:${number}`].map(
    parseIp,
  );
  return exampleSpec(name, {
    id: { cluster: 'c', service: serviceKey('default', name) },
    addresses,
    ports: ports.map((port) => ({ ...portOf(port), addresses })),
  });
}

function portOf(port: number): LoadBalancerSpec['ports'][number] {
  const spec = exampleSpec('x').ports[0]!;
  return { ...spec, port: parsePort(port), targets: nodeTargets(30080) };
}
