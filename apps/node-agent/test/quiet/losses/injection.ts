import { setTimeout as sleep } from 'node:timers/promises';
import type { IpFamily } from '@switchyard/core';
import type { CauseCode } from '@switchyard/drops';
import { type AgentMode, type LabPod, type Prober, startEchoServer } from '@switchyard/lab';
import { expect } from 'vitest';
import { waitForAnswer } from './lossy-programs.ts';
import type { GivenEndpoint, LossSite, ProbedProtocol } from './loss-site.ts';

/** A cause of loss that a test makes, with the packets that are lost. */
export interface InjectedCause {
  readonly name: string;
  readonly cause: CauseCode;
  /** Part of the sentence that says why. */
  readonly why?: RegExp;
  readonly direction?: 'answer';
  /** Namespace that drops the packets. Default: not compared. */
  readonly netns?: 'node' | 'pod';
  /** Default: both. */
  readonly protocols?: readonly ProbedProtocol[];
  /** Default: both. */
  readonly families?: readonly IpFamily[];
  /** Whether sending again would not be lost, or not for this cause. */
  readonly isOnce?: boolean;
  /** Only where an observer explains the losses of another program, which can then be stopped. */
  readonly onlyObserved?: boolean;
  /** Default: all. */
  readonly modes?: readonly AgentMode[];
  /** Time until the kernel knows, in milliseconds; default 0. */
  readonly delay?: number;
  readonly inject: (site: LossSite, place: InjectionPlace) => Promise<Injection>;
}

/** Names and numbers that no other cause has. */
export interface InjectionPlace {
  readonly ipFamily: IpFamily;
  readonly service: string;
  readonly targetPort: number;
}

export interface Injection {
  /** Sends what is lost; resolves after its time-out. */
  readonly send: (protocol: ProbedProtocol) => Promise<unknown>;
  readonly undo?: () => Promise<unknown>;
}

/** Of one attempt, in milliseconds. */
export const timeout = 300;

export interface Target {
  readonly address: string;
  readonly port: number | Readonly<Record<ProbedProtocol, number>>;
  readonly source?: string;
  readonly sourcePort?: number;
}

/** One attempt of a prober. */
export function attempt(prober: Prober, { address, port, ...source }: Target): Injection['send'] {
  return (protocol) =>
    prober.probe({
      protocol: protocol === 'TCP' ? 'tcp' : 'udp',
      address,
      port: typeof port === 'number' ? port : port[protocol],
      timeout,
      ...source,
    });
}

/** Cluster IP of a new Service whose only endpoint is the server. */
export async function serve(site: LossSite, { ipFamily, service, targetPort }: InjectionPlace): Promise<string> {
  const endpoints = [{ address: addressOf(site.server, ipFamily) }];
  return (await site.make({ name: service, ipFamily, targetPort, endpoints })).clusterIp;
}

/** `place`, with a target port on which the server of the site does not listen. */
export function unserved(place: InjectionPlace): InjectionPlace {
  return { ...place, targetPort: place.targetPort - 200 };
}

/** A Service, sent to from a pod of the node at its cluster IP. */
export function fromPod(
  endpoints: (site: LossSite, ipFamily: IpFamily) => readonly GivenEndpoint[],
): InjectedCause['inject'] {
  return async (site, { ipFamily, service, targetPort }) => {
    const made = await site.make({ name: service, ipFamily, targetPort, endpoints: endpoints(site, ipFamily) });
    return { send: attempt(site.caller, { address: made.clusterIp, port: 80 }) };
  };
}

export function addressOf(pod: LabPod, ipFamily: IpFamily): string {
  return pod.addresses[ipFamily] ?? '';
}

export function ipWord(ipFamily: IpFamily): string {
  return ipFamily === 'IPv4' ? 'ip' : 'ip6';
}

export interface ForeignRule {
  readonly hook: string;
  readonly priority?: number;
  /** Rule without its address: `ADDRESS` is the caller's, or the server's for answers. */
  readonly rule: string;
  readonly from?: 'node';
  readonly direction?: 'answer';
}

/** A table of another program that drops packets of the caller, whose Service is in order. */
export function foreignRule(name: string, { hook, priority = 0, rule, from, direction }: ForeignRule): InjectedCause {
  return {
    name: `rule of another table: ${name}`,
    cause: 'otherRule',
    why: new RegExp(`at the hook ${hook}.*nftables chains? (.*, )?inet other c\\b`),
    ...(direction === undefined ? {} : { direction }),
    inject: async (site, { ipFamily, service, targetPort }) => {
      const pod = from === 'node' ? site.remote : site.server;
      const node = from === 'node' ? site.otherNode : site.node;
      const endpoints = [{ address: addressOf(pod, ipFamily), node }];
      const { clusterIp } = await site.make({ name: service, ipFamily, targetPort, endpoints });
      const server = addressOf(pod, ipFamily);
      const words = { IP: ipWord(ipFamily), CALLER: addressOf(site.callerPod, ipFamily), SERVER: server };
      const text = rule.replaceAll(/IP|CALLER|SERVER/g, (word) => words[word as keyof typeof words]);
      const chain = `chain c { type filter hook ${hook} priority ${priority} ; ${text} ; }`;
      await site.shell(site.node, `nft 'table inet other { ${chain} ; }'`);
      return {
        send: attempt(from === 'node' ? site.onNode : site.caller, { address: clusterIp, port: 80 }),
        undo: () => site.shell(site.node, 'nft delete table inet other'),
      };
    },
  };
}

/** Packets to the address leave the node, and are dropped elsewhere, as those to the default gateway. */
async function leadAway(site: LossSite, address: string): Promise<void> {
  await site.shell(site.node, `ip route add ${address} via ${site.cluster.lab.client.addresses.IPv4}`);
}

/** The proxy stops, then its only endpoint is replaced, and the pod of the former one is removed. */
export function staleRules(
  name: string,
  cause: 'staleFlow' | 'staleRule',
  stale: readonly ProbedProtocol[],
  way?: 'leadsAway',
): InjectedCause {
  return {
    name,
    cause,
    why: /is no endpoint of/,
    protocols: stale,
    families: ['IPv4'],
    onlyObserved: true,
    isOnce: true,
    ...(way === undefined ? {} : { delay: 2_000 }), // it has to wait for two readings
    inject: async (site, { ipFamily, service, targetPort }) => {
      const victim = await site.cluster.lab.addPod(site.node, service.replaceAll('-', ''));
      const endpoints = [{ address: addressOf(victim, ipFamily) }];
      const { clusterIp } = await site.make({ name: service, ipFamily, targetPort, endpoints });
      await site.settled();
      const ask = attempt(site.caller, { address: clusterIp, port: 80 });
      expect(await ask('TCP'), 'a connection that must not hide the lost one').toMatchObject({ status: 'refused' });
      startEchoServer(victim, { pod: 'victim', tcp: [targetPort], udp: [targetPort] });
      await waitForAnswer(site.caller, { address: clusterIp, port: 80 }, 'victim');
      const socket = await site.caller.connectUdp({ protocol: 'udp', address: clusterIp, port: 80 });
      await socket.ask(timeout);
      site.pauseProxy();
      await site.replaceEndpoint(service, addressOf(site.server, ipFamily));
      await site.cluster.lab.removePod(victim);
      if (way === 'leadsAway') await leadAway(site, addressOf(victim, ipFamily));
      await sleep(1_200); // attempts so far are read
      return {
        send: cause === 'staleFlow' ? () => socket.ask(timeout) : ask,
        undo: async () => {
          site.resumeProxy();
          await socket.close();
        },
      };
    },
  };
}
