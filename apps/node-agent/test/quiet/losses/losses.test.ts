import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { agentModes } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../privileged/agent-log.ts';
import { healthyService, injectedCauses } from './injected-causes.ts';
import { foreignRule, type InjectedCause } from './injection.ts';
import {
  echoPorts,
  type KubeProxyCommand,
  type LossLine,
  type LossSite,
  type ObservedProxy,
  observedProxy,
  openLossSite,
  ownProxy,
  protocols,
  realKubeProxy,
} from './loss-site.ts';

// Each cause of loss is made with real packets; /debug/losses must name it and the Service, and nothing else.

const { signal } = new AbortController();

const { KUBE_PROXY, LOSS_ATTEMPTS = '1', LOSS_SUMMARY } = process.env;
/** Attempts of each cause that can be repeated. LOSS_SUMMARY names a file for the packets with right and wrong causes. */
const requested = Number(LOSS_ATTEMPTS);
const parallel = 250;
/** Mostly half a second passes; other tests may run beside these. */
const patience = 30_000;
/** With KUBE_PROXY, the command of a real one, also beside that; 1.20 needs the argument --feature-gates=IPv6DualStack=true. */
const kubeProxy = KUBE_PROXY?.split(' ') as KubeProxyCommand | undefined;
const proxies: readonly ObservedProxy[] = [
  ...agentModes.map(ownProxy),
  observedProxy('nftables'),
  ...(kubeProxy === undefined ? [] : [realKubeProxy(kubeProxy, 'iptables'), realKubeProxy(kubeProxy, 'nftables')]),
];

/** Each proxy has a lab of its own, whose tests mostly wait; those of one lab follow each other. */
const inTurn = { concurrent: false };

describe.concurrent.each(proxies)('losses, $name', (proxy) => {
  const { mode } = proxy;
  let site: LossSite;

  beforeAll(async () => {
    site = await openLossSite(proxy, signal);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const linesOf = async (service: string, from: number): Promise<readonly LossLine[]> =>
    (await site.losses())
      .slice(from)
      .filter(({ services }) => services.some((key) => key.startsWith(`default/${service}:`)));

  const runs = injectedCauses.flatMap((one, index) =>
    ipFamilies
      .filter(
        (ipFamily) =>
          one.families?.includes(ipFamily) !== false &&
          one.modes?.includes(mode) !== false &&
          (one.onlyObserved !== true || proxy.isObserved),
      )
      .map((ipFamily) => ({ ...one, ipFamily, service: `cause-${index}-${ipFamily.toLowerCase()}`, index })),
  );

  test.each(runs)('$name, $ipFamily', inTurn, async ({ service, ipFamily, index, ...one }) => {
    const targetPort = echoPorts[index * 2 + (ipFamily === 'IPv4' ? 0 : 1)] ?? 0;
    const injection = await one.inject(site, { ipFamily, service, targetPort });
    // Drops after translation show that the proxy had the Service; of others that is not known at once.
    if (proxy.isSlow || one.name.includes('another table: before')) await sleep(Math.max(proxy.lag, 200));
    const before = (await site.losses()).length;
    try {
      const sent = one.protocols ?? protocols;
      const attempts = one.isOnce === true ? 1 : requested;
      for (let done = 0; done < attempts; done += parallel) {
        const now = Math.min(parallel, attempts - done);
        await Promise.all(Array.from({ length: now }, () => sent.map(injection.send)).flat());
      }
      for (const protocol of sent) {
        const key = `default/${service}:${protocol.toLowerCase()}/${protocol}`;
        const isFound = async (): Promise<boolean> =>
          (await linesOf(service, before)).some((line) => isCause(line, one, key));
        const limit = performance.now() + patience + (one.delay ?? 0);
        await until(async () => performance.now() > limit || (await isFound()));
        expect(await isFound(), `${protocol}: ${JSON.stringify((await site.losses()).slice(before))}`).toBe(true);
      }
    } finally {
      await injection.undo?.();
    }
    if (LOSS_SUMMARY !== undefined) {
      await sleep(1_200); // the last reading
      const summary = summaryOf(await linesOf(service, before), { proxy: proxy.name, ...one, ipFamily });
      appendFileSync(LOSS_SUMMARY, `${summary}\n`);
    }
    const lines = await linesOf(service, before);
    expect([...new Set(lines.map(({ cause }) => cause))]).toEqual([one.cause]);
  });

  test.each(ipFamilies)('answered requests, %s: no loss is claimed', inTurn, async (ipFamily) => {
    const service = `healthy-${ipFamily.toLowerCase()}`;
    const targetPort = echoPorts.at(ipFamily === 'IPv4' ? -1 : -2) ?? 0;
    const { clusterIp } = await site.make(healthyService(site, { ipFamily, service, targetPort }));
    const ask = (protocol: 'tcp' | 'udp') =>
      site.caller.probe({ protocol, address: clusterIp, port: 80, timeout: 1000 });
    if (proxy.isSlow) await sleep(proxy.lag);
    expect(await ask('tcp')).toMatchObject({ status: 'answered' });
    await sleep(1_200); // the last reading of losses before
    const before = (await site.losses()).length;
    const rounds = requested > 1 ? 12_500 : 50;
    for (let round = 0; round < rounds; round++) {
      const answers = await Promise.all(['tcp', 'udp', 'tcp', 'udp'].map((protocol) => ask(protocol as 'tcp' | 'udp')));
      expect(answers.map(({ status }) => status)).toEqual(['answered', 'answered', 'answered', 'answered']);
    }
    await sleep(1_200); // a reading later
    expect((await site.losses()).slice(before)).toEqual([]);
  });

  test.each(['request', 'answer'] as const)(
    'why names the rule of another table that drops each %s',
    inTurn,
    async (dropped) => {
      const service = `rule-${dropped}`;
      const rule = `ct state invalid counter; IP ${dropped === 'request' ? 'daddr' : 'saddr'} SERVER drop`;
      const { inject } = foreignRule('', { hook: 'forward', rule });
      const injection = await inject(site, { ipFamily: 'IPv4', service, targetPort: echoPorts[0] ?? 0 });
      const place = { namespace: 'default', name: service };
      const { spec } = await site.cluster.api.get(apiResources.services, place, signal);
      if (proxy.isSlow) await sleep(proxy.lag);
      const chain = await site.shell(site.node, 'nft -a list chain inet other c');
      const { why, ...answer } = await site.why(site.callerPod, `${spec?.clusterIP}:80/TCP`, 1);
      await injection.undo?.();
      expect(answer).toMatchObject({ verdict: 'lost', certainty: 'sure' });
      const handle = /drop # handle (\d+)/.exec(chain)?.[1];
      expect(why).toContain(`; it is rule 2 of chain inet other c (handle ${handle}) [otherRule, `);
      expect(await site.shell(site.node, 'nft list tables')).not.toContain('switchyard-trace');
    },
  );
});

interface SummaryHead extends Pick<InjectedCause, 'name' | 'cause'> {
  readonly proxy: string;
  readonly ipFamily: string;
}

/** Packets with the right cause, and with another. */
function summaryOf(lines: readonly LossLine[], { proxy, name, ipFamily, cause }: SummaryHead): string {
  const sum = (of: readonly LossLine[]): number => of.reduce((total, { count }) => total + count, 0);
  const right = sum(lines.filter((line) => line.cause === cause));
  return `${proxy} | ${name} | ${ipFamily} | ${right} | ${sum(lines) - right}`;
}

/** In the ebpf mode a packet after translation may belong to any Service with its endpoint. */
function isCause(line: LossLine, { cause, why = /./, direction, netns }: InjectedCause, key: string): boolean {
  const isSame = line.cause === cause && line.direction === (direction ?? 'request') && why.test(line.why);
  return (
    isSame &&
    (netns === undefined || line.where.netns === netns) &&
    line.services.includes(key as LossLine['services'][number])
  );
}
