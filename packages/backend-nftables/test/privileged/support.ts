import { once } from 'node:events';
import {
  type ApplyOutcome,
  type DataplaneBackend,
  diffTables,
  type ForwardingTable,
  type IpFamily,
  ipFamilies,
  noopLogger,
} from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import {
  createLab,
  createProber,
  type Lab,
  type LabHost,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { inject } from 'vitest';
import { nftablesBackend, type NftablesHost } from '../../src/index.ts';

declare module 'vitest' {
  interface ProvidedContext {
    transport: NftablesHost['transport'];
  }
}

/** The transport that this run of the tests is about. */
export const transport: NftablesHost['transport'] = inject('transport');

export const { signal } = new AbortController();

/** Runs commands in a lab host's namespace. */
export function runnerIn(host: LabHost): CommandRunner {
  return {
    run: (file, args, { stdin, timeout, env }) =>
      host.run(file, args, {
        timeout,
        ...(typeof stdin === 'string' ? { stdin } : {}),
        ...(env === undefined ? {} : { env }),
      }),
  };
}

/** What a backend needs to program a lab host's namespace, over `transport`. */
export function hostIn(host: LabHost): NftablesHost {
  return { runner: runnerIn(host), logger: noopLogger, transport, netns: `/run/netns/${host.namespace}` };
}

/** A backend on a real kernel, and the last table given to it. */
export class Kernel {
  readonly backend: DataplaneBackend;
  #last: ForwardingTable | undefined;

  private constructor(backend: DataplaneBackend) {
    this.backend = backend;
  }

  static async open(host: LabHost, family: IpFamily = 'IPv4'): Promise<Kernel> {
    return new Kernel(await nftablesBackend.open(hostIn(host), family, signal));
  }

  async full(table: ForwardingTable): Promise<ApplyOutcome> {
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'full' } }, signal);
  }

  async next(table: ForwardingTable): Promise<ApplyOutcome> {
    const delta = diffTables(this.#last, table);
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'delta', delta } }, signal);
  }
}

/** A lab with an echo server in each pod and a prober in each kind of sender. `near` runs on the node under test. */
export interface Site extends AsyncDisposable {
  readonly lab: Lab;
  readonly node: LabNode;
  readonly near: LabPod;
  readonly far: LabPod;
  readonly client: Prober;
  readonly pod: Prober;
  readonly self: Prober;
}

/** Two nodes with one pod each; forwarding on the first is for the test to program. */
export async function createSite(name: string): Promise<Site> {
  const lab = await createLab({ name, nodes: 2, ipFamilies }, signal);
  const [node, other] = lab.nodes as [LabNode, LabNode];
  const near = await lab.addPod(node, 'near');
  const far = await lab.addPod(other, 'far');
  for (const pod of [near, far]) startEchoServer(pod, { pod: pod.name, tcp: [8080], udp: [8080] });
  const [client, pod, self] = await Promise.all([lab.client, near, node].map((host) => createProber(host, signal)));
  const site = { lab, node, near, far, client: client!, pod: pod!, self: self! };
  await waitForEcho(site);
  return { ...site, [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose]() };
}

async function waitForEcho({ near, far, self }: Omit<Site, typeof Symbol.asyncDispose>): Promise<void> {
  for (const pod of [near, far]) {
    for (const family of ipFamilies) {
      let answer = 'none';
      for (let round = 0; round < 100 && answer !== 'answered'; round++) {
        const result = await self.probe({
          protocol: 'tcp',
          address: pod.addresses[family] ?? '',
          port: 8080,
          timeout: 200,
        });
        answer = result.status;
        if (answer === 'refused') await once(AbortSignal.timeout(20), 'abort'); // it is starting
      }
      if (answer !== 'answered') throw new Error(`the echo server of ${pod.name} does not answer on ${family}`);
    }
  }
}

/** A listing without the protocol match that only nft wants; nft prints numbers where the machine has no /etc/protocols. */
export function withoutProtocolMatch(listing: string): string {
  return listing.replaceAll(/meta l4proto \{ (?:tcp, udp, sctp|6, 17, 132) \} /g, '');
}

/** A listing without what is different at every look: how long the heartbeats still live. */
export function withoutAges(listing: string): string {
  return listing.replaceAll(/ expires \S+/g, '');
}
