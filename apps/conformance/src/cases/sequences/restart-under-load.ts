import { outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import type { SequenceContext } from './support/sequence-context.ts';
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
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'NodePort' });
    await context.begin({ services: [service], endpoints: objects.endpoints(service, 'near', 'far') });
    const ends = [
      { id: 'killed', during: 'while the proxy is killed and started again', end: () => context.proxy.kill() },
      { id: 'stopped', during: 'while the proxy is stopped and started again', end: () => context.proxy.stop() },
    ];
    for (const { id, during, end } of ends) {
      const calls = [outsideToNodePort(service), podToClusterIp(service)] as const;
      await underLoad(context, { id, during, calls }, async () => {
        await end();
        await context.sleep(absence);
        await context.startProxy();
      });
      await seeAll(context, id, service);
    }
  },
};

/** Checks that the endpoints answer after the restart. */
async function seeAll(
  context: SequenceContext,
  id: string,
  service: Parameters<SequenceContext['connectorFor']>[0]['service'],
): Promise<void> {
  const { objects } = context;
  await context.see(
    {
      id: `${id}/afterwards from outside`,
      call: outsideToNodePort(service),
      expect: objects.forward(['near', 'far'], 'masqueraded'),
    },
    { id: `${id}/afterwards from a pod`, call: podToClusterIp(service), expect: objects.forward(['near', 'far']) },
  );
}
