import { HostError, ipFamilies, millis, systemClock } from '@switchyard/core';
import { createLab } from './namespace-lab.ts';
import { startEchoServer } from './echo-server.ts';
import type { Lab, LabHost, LabNode, LabPod } from './lab.ts';
import type { ProbeRequest, ProbeResult } from './probe-types.ts';
import { createProber, type Prober } from './prober.ts';

/** A lab for tests of a dataplane: an echo server in each pod, a prober in each kind of sender. `near` runs on the node under test. */
export interface Site extends AsyncDisposable {
  readonly lab: Lab;
  readonly node: LabNode;
  readonly near: LabPod;
  readonly far: LabPod;
  /** Outside the cluster. */
  readonly client: Prober;
  /** In `near`. */
  readonly pod: Prober;
  /** On the node. */
  readonly self: Prober;
}

/** TCP and UDP port of the echo servers in `near` and `far`. */
export const sitePort = 8080;

/** Two nodes with one pod each; the test programs forwarding on the first. */
export async function createSite(name: string, signal: AbortSignal): Promise<Site> {
  const lab = await createLab({ name, nodes: 2, ipFamilies }, signal);
  try {
    const [node, other] = lab.nodes as [LabNode, LabNode];
    const near = await lab.addPod(node, 'near');
    const far = await lab.addPod(other, 'far');
    await Promise.all([node, other].map(liftIcmpLimits));
    for (const pod of [near, far]) startEchoServer(pod, { pod: pod.name, tcp: [sitePort], udp: [sitePort] });
    const [client, pod, self] = await Promise.all([
      createProber(lab.client, signal),
      createProber(near, signal),
      createProber(node, signal),
    ]);
    for (const one of [near, far]) await awaitEcho(self, one, sitePort, signal);
    return { lab, node, near, far, client, pod, self, [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose]() };
  } catch (error) {
    await lab[Symbol.asyncDispose]();
    throw error;
  }
}

/** Waits until the echo server of a host answers by TCP at all addresses, for at most 60 s each, because a busy machine starts processes slowly. */
export async function awaitEcho(prober: Prober, host: LabHost, port: number, signal: AbortSignal): Promise<void> {
  for (const address of Object.values(host.addresses)) {
    const until = systemClock.monotonic() + 60_000;
    while ((await prober.probe({ protocol: 'tcp', address, port, timeout: 200 })).status !== 'answered') {
      if (systemClock.monotonic() > until) {
        throw new Error(`the echo server of ${host.name} does not answer at ${address}`);
      }
      await systemClock.sleep(millis(20), signal);
    }
  }
}

/** Number of new connections, and those without an answer. */
export interface Traffic {
  readonly count: number;
  readonly failed: readonly (ProbeResult & { readonly request: ProbeRequest })[];
}

/** Destinations and number of connections. */
export interface TrafficOptions {
  readonly prober: Prober;
  readonly requests: readonly ProbeRequest[];
  /** Parallel connections for each request. */
  readonly lines: number;
}

/** Makes new connections, one after another in each of `lines`, while `work` runs; `count` returns the number so far. */
export async function connectWhile(
  { prober, requests, lines }: TrafficOptions,
  work: (count: () => number) => Promise<void>,
): Promise<Traffic> {
  const failed: Traffic['failed'][number][] = [];
  let count = 0;
  const done = new AbortController();
  const connect = async (request: ProbeRequest): Promise<void> => {
    while (!done.signal.aborted) {
      const result = await prober.probe(request);
      count++;
      if (result.status !== 'answered') failed.push({ ...result, request });
    }
  };
  const connecting = Promise.all(requests.flatMap((request) => Array.from({ length: lines }, () => connect(request))));
  await work(() => count).finally(() => done.abort());
  await connecting;
  return { count, failed };
}

/** Removes a host's rate limits of ICMP errors, because dataplane tests expect every reject. Throws `HostError`. */
export async function liftIcmpLimits(node: LabHost): Promise<void> {
  const settings = ['ipv4/icmp_ratelimit', 'ipv6/icmp/ratelimit'].map((name) => `echo 0 > /proc/sys/net/${name}`);
  const most = ['icmp_msgs_per_sec', 'icmp_msgs_burst'].map(
    (name) => `f=/proc/sys/net/ipv4/${name}; if [ -w $f ]; then echo 1000000 > $f; fi`,
  );
  const { exitCode, stderr } = await node.run('sh', ['-ec', [...settings, ...most].join('\n')]);
  if (exitCode !== 0)
    throw new HostError('lab.icmp', `cannot lift the limits on ICMP errors of ${node.name}: ${stderr}`);
}
