import { type Millis, millis } from '@switchyard/core';
import { flowText, type ScenarioService } from '@switchyard/scenarios';
import { countText } from '../../engine/probe-flow.ts';
import { underLoad } from './support/load.ts';
import { seeMoved } from './support/moved.ts';
import { type Call, outsideToNodePort, podToClusterIp, type PodName } from './support/object-factory.ts';
import type { ExpectedCall, Sequence, SequenceContext } from './support/sequence-context.ts';

/** Time between end and start of the proxy, in milliseconds: packets use the rules that it left. */
const absence = 300;

/** The proxy is killed, or stopped, and started again. */
export const restartUnderLoad: Sequence = {
  name: 'restart-under-load',
  title: 'a proxy that is killed, or stopped, and started again loses no new connection',
  why: 'kube-proxy leaves its rules when it ends and takes them over at the start (kube-proxy-facts A9): 0 of 300 requests were lost by a restart of the real one',
  tags: ['restart', 'load', 'node-port'],
  needs: ['restartProxy', 'load', 'sendFromOutside'],
  async run(context) {
    const { objects, proxy } = context;
    const service = await context.serve({ type: 'NodePort' }, 'near', 'far');
    const [outside, inside] = [outsideToNodePort(service), podToClusterIp(service)];
    for (const id of ['killed', 'stopped'] as const) {
      const during = `while the proxy is ${id} and started again`;
      await underLoad(context, { id, during, calls: [outside, inside] }, async () => {
        await (id === 'killed' ? proxy.kill() : proxy.stop());
        await context.sleep(absence);
        await context.startProxy();
      });
      await context.see(
        [`${id}/afterwards from outside`, outside, objects.masqueraded('near', 'far')],
        [`${id}/afterwards from a pod`, inside, objects.direct('near', 'far')],
      );
    }
  },
};

/**
 * From the start of the proxy to the first answer of an endpoint that came while it was away: what kube-proxy 1.36 was measured with,
 * 0.61 to 0.67 s, and half of it for a machine that does other things as well.
 */
const limit = millis(1000);

/** Other work of the machine only adds to the time, so the shortest of several starts counts. */
const mostStarts = 4;

/** Time between the kill of the proxy and the first packets, in milliseconds. */
const beforePackets = 200;

/** The node continues without its proxy: the kernel keeps its rules, and the next start applies all changes. */
export const agentDown: Sequence = {
  name: 'agent-down',
  title: 'without its proxy a node goes on with what it had; the start makes up for all that changed, at once',
  why: 'kube-proxy-facts A9: stop leaves the rules, no longer updated; a start reconciles. kube-proxy 1.36 was measured with 0 of 300 lost and the first new answer after 0.61 to 0.67 s',
  tags: ['restart', 'load', 'node-port'],
  needs: ['restartProxy', 'load', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const changed = objects.service({ number: 1, type: 'NodePort' });
    const removed = objects.service({ number: 2 });
    const added = objects.service({ number: 3 });
    await context.begin({
      services: [changed, removed],
      endpoints: [...objects.endpoints(changed, 'near'), ...objects.endpoints(removed, 'far')],
    });
    const [outside, inside] = [outsideToNodePort(changed), podToClusterIp(changed)];
    const during = 'while the proxy is killed, away and started again';
    await underLoad(context, { id: 'away', during, calls: [outside, inside] }, async () => {
      await context.proxy.kill();
      await context.write({
        services: [added],
        without: [removed],
        endpoints: [...objects.endpoints(changed, 'far2'), ...objects.endpoints(added, 'near')],
      });
      await seeWhileEnded(context, [
        ['away/a replaced endpoint still answers at the NodePort', outside, objects.masqueraded('near')],
        ['away/a replaced endpoint still answers at the cluster IP', inside, objects.direct('near')],
        ['away/a removed Service still answers', podToClusterIp(removed), objects.direct('far')],
        ['away/a new Service does not answer', podToClusterIp(added), { kind: 'pass' }],
      ]);
      await context.startProxy();
    });
    await context.see(
      ['back/the new endpoint answers at the NodePort', outside, objects.masqueraded('far2')],
      ['back/the new endpoint answers at the cluster IP', inside, objects.direct('far2')],
      ['back/the removed Service answers no longer', podToClusterIp(removed), { kind: 'pass' }],
      ['back/the new Service answers', podToClusterIp(added), objects.direct('near')],
    );
    if (context.hasAbility('controlProxy', [firstAnswer])) await seeFirstAnswer(context, inside);
  },
};

/** Id of the check of a start's duration. */
const firstAnswer = 'first answer after the start';

/** Checks that need a proxy that stays ended. */
async function seeWhileEnded(context: SequenceContext, expected: readonly ExpectedCall[]): Promise<void> {
  const ids = expected.map(([id]) => id);
  if (!context.hasAbility('controlProxy', ids)) return;
  await context.sleep(beforePackets);
  await context.see(...expected);
}

/** Starts the proxy with another endpoint each time, until it is quick enough or has started `mostStarts` times. */
async function seeFirstAnswer(context: SequenceContext, call: Call): Promise<void> {
  const { objects, proxy } = context;
  const took: (Millis | undefined)[] = [];
  const last: string[] = [];
  const isQuick = (): boolean => took.some((one) => one !== undefined && one < limit);
  for (let round = 0; round < mostStarts && !isQuick(); round++) {
    const pod = round % 2 === 0 ? 'near' : 'far2';
    await proxy.kill();
    await context.write({ endpoints: objects.endpoints(call.service, pod) });
    const connector = await context.connectorFor(call);
    const start = await proxy.start({ isTimed: true });
    const wait = { interval: millis(5), timeout: millis(5000) };
    const answer = await connector.firstAnswer(objects.pod(pod), wait);
    took.push(answer.at === undefined ? undefined : millis(answer.at - start));
    if (answer.at === undefined) last.push(countText([answer.last]));
    await proxy.settled(context.signal);
  }
  await proxy.kill();
  await context.startProxy(); // as any other
  const within = `within ${(limit / 1000).toFixed(2)} s`;
  const expected = `answered ${within} of the start`;
  const isAnswered = took.some((one) => one !== undefined);
  const times = took.map((one) => (one === undefined ? 'more than 5 s' : `${(one / 1000).toFixed(3)} s`));
  const check = {
    id: firstAnswer,
    what: `${flowText(context.flowAt(call).flow)}, by the endpoint that came while the proxy was away`,
  };
  const because = [`after ${times.join(', ')}`, ...last];
  const doubt = isQuick() ? undefined : await context.whySlow();
  if (doubt !== undefined)
    return context.record.inconclusive({ ...check, because: `${doubt} (${because.join('; ')})` });
  const observed = isQuick() ? expected : isAnswered ? `answered, but not ${within}` : 'never answered by it';
  context.record.check({ ...check, expected, observed, because });
}

/** Endpoints that were removed while no proxy ran. */
export const staleAfterRestart: Sequence = {
  name: 'stale-after-restart',
  title: 'endpoints that went while the proxy was dead are gone after its start',
  why: 'discovery.k8s.io/v1 EndpointSlice: removals are what a dead kube-proxy loses requests by, until it is back (155 to 182 of 250); UDP flows to them too (kube-proxy-facts A1 row 32)',
  tags: ['restart', 'udp', 'node-port'],
  needs: ['restartProxy', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const web = objects.service({ number: 1, type: 'NodePort' });
    const last = objects.service({ number: 2 });
    const dns = objects.service({ number: 3, protocol: 'UDP', type: 'NodePort' });
    const resolver = { ...podToClusterIp(dns), sourcePort: 9101 };
    const ofWeb = objects.endpoints(web, 'near', 'far');
    const others = [last, dns].flatMap((service) => objects.endpoints(service, 'near'));
    await context.begin({ services: [web, last, dns], endpoints: [...ofWeb, ...others] });
    await context.see(['before/a UDP client that keeps its port', resolver, objects.direct('near')]);
    await context.proxy.kill();
    await context.write({ endpoints: [web, dns].flatMap((service) => objects.endpoints(service, 'far')) });
    await seeWhileEnded(context, [['dead/the endpoint is still asked', resolver, objects.direct('near')]]);
    await context.startProxy();
    await context.see(
      ['back/NodePort', outsideToNodePort(web), objects.masqueraded('far')],
      ['back/cluster IP', podToClusterIp(web), objects.direct('far')],
      ['back/a Service without endpoints', podToClusterIp(last), { kind: 'reject' }],
    );
    await seeMoved(context, { id: 'back/the UDP client', call: resolver, to: 'far' });
  },
};

/** Number of changes, written without a pause, so that the proxy ends while it applies them. */
const changes = 30;
const pods: readonly PodName[] = ['near', 'near2', 'far', 'far2'];

/** The proxy ends while it applies changes. */
export const manyChangesThenStop: Sequence = {
  name: 'many-changes-then-stop',
  title: 'a proxy that ends in the middle of many changes loses nothing, and makes up for all of them at its start',
  why: 'kube-proxy-facts A9: a restart is hitless, and reconciles whatever the process before had done of its work',
  tags: ['restart', 'load', 'node-port'],
  needs: ['restartProxy', 'load', 'sendFromOutside'],
  async run(context) {
    const { objects, proxy } = context;
    const stable = objects.service({ number: 1, type: 'NodePort' });
    const others = [2, 3, 4].map((number) => objects.service({ number, type: 'NodePort' }));
    const extra = objects.service({ number: 5 });
    const podAt = (change: number): PodName => pods[change % pods.length] ?? 'near';
    const endpointsAt = (change: number) => [
      ...objects.endpoints(stable, 'near', 'far'),
      ...others.flatMap((service, index) => objects.endpoints(service, podAt(change + index))),
    ];
    await context.begin({ services: [stable, ...others], endpoints: endpointsAt(0) });
    const calls = [outsideToNodePort(stable), podToClusterIp(stable)];
    for (const [id, last] of [
      ['stopped', 1],
      ['killed', 2],
    ] as const) {
      const during = `while it is ${id} in the middle of changes and started again`;
      await underLoad(context, { id, during, calls }, async () => {
        for (let change = 1; change < changes; change++) await burst(context, change, endpointsAt(change), extra);
        const ended = id === 'stopped' ? proxy.stop() : proxy.kill();
        await context.write({ without: [extra], endpoints: endpointsAt(last) });
        await ended;
        await context.startProxy();
      });
      await context.see(
        ...others.map((service, index) => {
          const name = `${id}/the last endpoint of Service ${index + 1}`;
          return [name, podToClusterIp(service), objects.direct(podAt(last + index))] as const;
        }),
        [`${id}/a Service that came and went`, podToClusterIp(extra), { kind: 'pass' }],
      );
    }
  },
};

type Endpoints = ReturnType<SequenceContext['objects']['endpoints']>;

/** One change: endpoints move, and a Service is added or removed. */
async function burst(context: SequenceContext, change: number, endpoints: Endpoints, extra: ScenarioService) {
  const isThere = change % 2 === 1;
  await context.write({
    ...(isThere ? { services: [extra] } : { without: [extra] }),
    endpoints: isThere ? [...endpoints, ...context.objects.endpoints(extra, 'near')] : endpoints,
  });
}
