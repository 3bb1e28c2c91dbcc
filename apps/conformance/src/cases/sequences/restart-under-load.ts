import { outsideToNodePort, podToClusterIp } from './support/cast.ts';
import type { Play } from './support/play.ts';
import { underLoad } from './support/load.ts';
import type { Sequence } from './support/sequence.ts';

/** How long the proxy stays away, in milliseconds: enough for packets to meet what it leaves behind. */
const absence = 300;

/** A proxy that dies, by itself or because it is told to, and is started again. */
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

/** A restart that loses nothing because nobody answers as he should would be none. */
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
