import type { PodName } from '../sequence-pods.ts';
import { outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import { underLoad } from './support/load.ts';
import type { SequenceContext } from './support/sequence-context.ts';
import type { Sequence } from './support/sequence.ts';

/** Number of changes, written without a pause, so that the proxy ends while it applies them. */
const changes = 30;
const pods: readonly PodName[] = ['near', 'near2', 'far', 'far2'];

/** The proxy ends while it applies changes. */
export const manyChangesThenStop: Sequence = {
  name: 'many-changes-then-stop',
  title: 'a proxy that ends in the middle of many changes loses nothing, and makes up for all of them at its start',
  why: 'kube-proxy-facts A9: a restart is hitless, and reconciles whatever the process before had done of its work',
  tags: ['restart', 'load', 'node-port'],
  needs: ['controlProxy', 'load', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const stable = objects.service({ number: 1, type: 'NodePort' });
    const others = [2, 3, 4].map((number) => objects.service({ number, type: 'NodePort' }));
    const extra = objects.service({ number: 5 });
    const kept = objects.endpoints(stable, 'near', 'far');
    const endpointsAt = (change: number) => [
      ...kept,
      ...others.flatMap((service, index) => objects.endpoints(service, podAt(change + index))),
    ];
    await context.begin({ services: [stable, ...others], endpoints: endpointsAt(0) });
    const ends = [
      { id: 'stopped', last: 1, end: () => context.proxy.stop() },
      { id: 'killed', last: 2, end: () => context.proxy.kill() },
    ];
    const calls = [outsideToNodePort(stable), podToClusterIp(stable)] as const;
    for (const { id, last, end } of ends) {
      await underLoad(
        context,
        { id, during: `while it is ${id} in the middle of changes and started again`, calls },
        async () => {
          for (let change = 1; change < changes; change++) await burst(context, change, endpointsAt(change), extra);
          const ended = end();
          await context.write({ without: [extra], endpoints: endpointsAt(last) });
          await ended;
          await context.startProxy();
        },
      );
      await context.see(
        ...others.map((service, index) => ({
          id: `${id}/the last endpoint of Service ${index + 1}`,
          call: podToClusterIp(service),
          expect: objects.forward([podAt(last + index)]),
        })),
        { id: `${id}/a Service that came and went`, call: podToClusterIp(extra), expect: { kind: 'pass' } },
      );
    }
  },
};

function podAt(change: number): PodName {
  return pods[change % pods.length] ?? 'near';
}

type Endpoints = Parameters<SequenceContext['write']>[0]['endpoints'] & object;

/** One change: endpoints move, and a Service is added or removed. */
async function burst(
  context: SequenceContext,
  change: number,
  endpoints: Endpoints,
  extra: Parameters<SequenceContext['connectorFor']>[0]['service'],
) {
  const isThere = change % 2 === 1;
  await context.write({
    ...(isThere ? { services: [extra] } : { without: [extra] }),
    endpoints: isThere ? [...endpoints, ...context.objects.endpoints(extra, 'near')] : endpoints,
  });
}
