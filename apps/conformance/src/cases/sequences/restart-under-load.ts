import { outsideToNodePort, podToClusterIp } from './support/cast.ts';
import type { Play } from './support/play.ts';
import { underLoad } from './support/load.ts';
import type { Sequence } from './support/sequence.ts';

/** Time between end and start of the proxy, in milliseconds: packets use the rules that it left. */
const absence = 300;

/** The proxy is killed, or stopped, and started again. */
export const restartUnderLoad: Sequence = {
  name: 'restart-under-load',
  title: 'a proxy that is killed, or stopped, and started again loses no new connection',
  why: 'kube-proxy leaves its rules when it ends and takes them over at the start (kube-proxy-facts A9): 0 of 300 requests were lost by a restart of the real one',
  tags: ['restart', 'load', 'node-port'],
  needs: ['controlProxy', 'load', 'sendFromOutside'],
  async run(play) {
    const { cast } = play;
    const service = cast.service({ type: 'NodePort' });
    await play.begin({ services: [service], endpoints: cast.endpoints(service, 'near', 'far') });
    const ends = [
      { id: 'killed', during: 'while the proxy is killed and started again', end: () => play.proxy.kill() },
      { id: 'stopped', during: 'while the proxy is stopped and started again', end: () => play.proxy.stop() },
    ];
    for (const { id, during, end } of ends) {
      const calls = [outsideToNodePort(service), podToClusterIp(service)] as const;
      await underLoad(play, { id, during, calls }, async () => {
        await end();
        await play.sleep(absence);
        await play.startProxy();
      });
      await seeAll(play, id, service);
    }
  },
};

/** Checks that the endpoints answer after the restart. */
async function seeAll(play: Play, id: string, service: Parameters<Play['dial']>[0]['service']): Promise<void> {
  const { cast } = play;
  await play.see(
    {
      id: `${id}/afterwards from outside`,
      call: outsideToNodePort(service),
      expect: cast.forward(['near', 'far'], 'masqueraded'),
    },
    { id: `${id}/afterwards from a pod`, call: podToClusterIp(service), expect: cast.forward(['near', 'far']) },
  );
}
