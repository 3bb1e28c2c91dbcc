import type { PodName } from '../sequence-pods.ts';
import { outsideToNodePort, podToClusterIp } from './support/cast.ts';
import { underLoad } from './support/load.ts';
import type { Play } from './support/play.ts';
import type { Sequence } from './support/sequence.ts';

/** Written without a pause, so that the end meets the proxy at work. */
const changes = 30;
const pods: readonly PodName[] = ['near', 'near2', 'far', 'far2'];

/** The proxy ends in the middle of its work. */
export const manyChangesThenStop: Sequence = {
  name: 'many-changes-then-stop',
  title: 'a proxy that ends in the middle of many changes loses nothing, and makes up for all of them at its start',
  why: 'kube-proxy-facts A9: a restart is hitless, and reconciles whatever the process before had done of its work',
  tags: ['restart', 'load', 'node-port'],
  needs: ['controlProxy', 'load', 'sendFromOutside'],
  async run(play) {
    const { cast } = play;
    const stable = cast.service({ number: 1, type: 'NodePort' });
    const others = [2, 3, 4].map((number) => cast.service({ number, type: 'NodePort' }));
    const extra = cast.service({ number: 5 });
    const kept = cast.endpoints(stable, 'near', 'far');
    const endpointsAt = (change: number) => [
      ...kept,
      ...others.flatMap((service, index) => cast.endpoints(service, podAt(change + index))),
    ];
    await play.begin({ services: [stable, ...others], endpoints: endpointsAt(0) });
    const ends = [
      { id: 'stopped', last: 1, end: () => play.proxy.stop() },
      { id: 'killed', last: 2, end: () => play.proxy.kill() },
    ];
    const calls = [outsideToNodePort(stable), podToClusterIp(stable)] as const;
    for (const { id, last, end } of ends) {
      await underLoad(
        play,
        { id, during: `while it is ${id} in the middle of changes and started again`, calls },
        async () => {
          for (let change = 1; change < changes; change++) await burst(play, change, endpointsAt(change), extra);
          const ended = end();
          await play.write({ without: [extra], endpoints: endpointsAt(last) });
          await ended;
          await play.startProxy();
        },
      );
      await play.see(
        ...others.map((service, index) => ({
          id: `${id}/the last endpoint of Service ${index + 1}`,
          call: podToClusterIp(service),
          expect: cast.forward([podAt(last + index)]),
        })),
        { id: `${id}/a Service that came and went`, call: podToClusterIp(extra), expect: { kind: 'pass' } },
      );
    }
  },
};

function podAt(change: number): PodName {
  return pods[change % pods.length] ?? 'near';
}

type Endpoints = Parameters<Play['write']>[0]['endpoints'] & object;

/** One change: endpoints move, and a Service comes or goes. */
async function burst(play: Play, change: number, endpoints: Endpoints, extra: Parameters<Play['dial']>[0]['service']) {
  const isThere = change % 2 === 1;
  await play.write({
    ...(isThere ? { services: [extra] } : { without: [extra] }),
    endpoints: isThere ? [...endpoints, ...play.cast.endpoints(extra, 'near')] : endpoints,
  });
}
