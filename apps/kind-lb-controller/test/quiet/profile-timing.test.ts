import { millis, noopLogger, parseCidr, parseIp, parsePort, systemClock } from '@switchyard/core';
import { takenInAfter, takenOutAfter } from '@switchyard/loss';
import { createCommandRunner } from '@switchyard/host';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { healthProfiles } from '../../src/health-profile/health-profiles.ts';
import { newInterfaceAddresses } from '../../src/kernel/interface-addresses.ts';
import { openProcessRuntime } from '../../src/runtime/process-runtime.ts';
import type { TargetChange } from '../../src/runtime/runtime.ts';
import type { HealthProfile } from '../../src/spec/health-profile.ts';
import type { LoadBalancerSpec } from '../../src/spec/load-balancer-spec.ts';
import { exampleSpec } from '../../src/testing/example-specs.ts';
import { createHaproxyNamespace, type HaproxyNamespace, nodes } from '../privileged/haproxy-namespace.ts';

// Every profile at once in the real HAProxy, with pauses shrunk so that nodes are checked every 300 ms.
const interval = 300;
/** HAProxy, and the pipe of its log. */
const slack = 150;
const { signal } = new AbortController();
const runner = createCommandRunner();
const pool = [parseCidr('192.0.2.0/24')];
const profiles = Object.values(healthProfiles).map(shrunk);

let stack: AsyncDisposableStack;
let host: HaproxyNamespace;
const changes: TargetChange[] = [];

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  host = stack.use(await createHaproxyNamespace('lbprof'));
  const runtime = stack.use(
    await openProcessRuntime({
      runDirectory: `${host.folder}/run`,
      program: '/usr/sbin/haproxy',
      netns: host.netns,
      isKeptOnExit: false,
      source: { kind: 'pool', cidrs: pool },
      interfaceAddresses: newInterfaceAddresses({ runner, interfaceName: 'lo', netns: host.netns, pool }),
      routes: undefined,
      kernel: undefined,
      listener: { onDisturbed: () => undefined, onTargetChange: (change) => void changes.push(change) },
      runner,
      clock: systemClock,
      log: noopLogger,
    }),
  );
  const outcomes = await Promise.all(profiles.map((profile, index) => runtime.ensure(specOf(profile, index), signal)));
  expect(outcomes.map(({ status }) => status)).toEqual(profiles.map(() => 'applied'));
  await pause(2 * interval); // the first checks are over, and HAProxy has spread them
});
afterAll(() => stack.disposeAsync());

/** Timeouts stay: a busy machine is not to make a check fail. */
function shrunk(profile: HealthProfile): HealthProfile {
  const downInterval = millis((profile.downInterval * interval) / profile.interval);
  return { ...profile, interval: millis(interval), downInterval };
}

function specOf(profile: HealthProfile, index: number): LoadBalancerSpec {
  const address = parseIp(`192.0.2.${index + 1}`);
  const targets = nodes.map((text, number) => {
    const own = parseIp(text);
    const check = { address: own, port: parsePort(32080), path: '/healthz' };
    return {
      name: `node${number + 1}`,
      node: `node${number + 1}`,
      address: own,
      port: parsePort(30080),
      check,
      draining: 'no' as const,
    };
  });
  const ports = [{ port: parsePort(80), protocol: 'TCP' as const, addresses: [address], targets }];
  return exampleSpec(profile.name, { ports, profile });
}

const pause = (time: number): Promise<void> => systemClock.sleep(millis(time), signal);

/** Time from the change of a node's health until each load balancer followed, by profile; the slowest may take `most`. */
async function followed(status: number, most: number): Promise<ReadonlyMap<string, number>> {
  changes.length = 0;
  const from = systemClock.now();
  await host.setHealth(nodes[0], status);
  const asked = systemClock.now();
  await pause(most + 2 * slack);
  const found = changes.filter(({ target, isUp }) => target === 'node1' && isUp === (status === 200));
  // When exactly the node changed its answer lies between the request and its confirmation.
  return new Map(found.map(({ id, time }) => [id.service.replace('default/', ''), time - (from + asked) / 2]));
}

test.each(['at one phase of the checks', 'at another'])(
  'each profile takes a node out and in when it says so, %s',
  async (phase) => {
    if (phase === 'at another') await pause(interval / 3);
    const outs = await followed(503, Math.max(...profiles.map((one) => takenOutAfter(one).longest)));
    const ins = await followed(200, Math.max(...profiles.map((one) => takenInAfter(one).longest)));
    const within = (after: number | undefined, { shortest, longest }: { shortest: number; longest: number }): boolean =>
      after !== undefined && after >= shortest - slack / 3 && after <= longest + slack;
    const late = profiles.flatMap((profile) => {
      const [out, back] = [outs.get(profile.name), ins.get(profile.name)];
      const isRight = within(out, takenOutAfter(profile)) && within(back, takenInAfter(profile));
      return isRight ? [] : [`${profile.name}: out after ${out} ms, in after ${back} ms`];
    });
    expect(late).toEqual([]);
  },
);

test('while no node is UP, ours and those that fail open answer from all nodes, the others not at all', async () => {
  await Promise.all(nodes.map((node) => host.setHealth(node, 503)));
  await pause(Math.max(...profiles.map((one) => takenOutAfter(one).longest)) + slack);
  const answers = await Promise.all(profiles.map((_, index) => host.get(`http://192.0.2.${index + 1}/`, 2)));
  const both = { [nodes[0]]: 1, [nodes[1]]: 1 };
  expect(new Map(profiles.map(({ name }, index) => [name, answers[index]]))).toEqual(
    new Map(profiles.map(({ name, whenNoneUp }) => [name, whenNoneUp === 'close' ? { lost: 2 } : both])),
  );
  expect(profiles.filter(({ whenNoneUp }) => whenNoneUp === 'close').map(({ name }) => name)).toEqual([
    'cloud-provider-kind',
    'cloud-provider-kind-envoy',
    'azure-lb',
    'digitalocean-lb',
    'oci-lb',
  ]);
});
