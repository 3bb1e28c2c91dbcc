import { outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import { underLoad } from './support/load.ts';
import type { Sequence } from './support/sequence.ts';

/** Endpoints of one family change while the other family serves. */
export const dualStack: Sequence = {
  name: 'dual-stack',
  title: 'the two families of a Service change independently: one is refused while the other loses nothing',
  why: 'KEP-563 (dual-stack); kube-proxy fact 27: two families never influence each other',
  tags: ['dual-stack', 'load', 'node-port'],
  needs: ['load', 'sendFromOutside'],
  families: 'dual',
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'NodePort' });
    const own = { objects, inOtherFamily: false, name: objects.ipFamily } as const;
    const other = { objects: objects.other, inOtherFamily: true, name: objects.other.ipFamily } as const;
    const all = [own, other].flatMap((one) => one.objects.endpoints(service, 'near', 'far'));
    await context.begin({ services: [service], endpoints: all });
    for (const [changing, still] of [
      [own, other],
      [other, own],
    ] as const) {
      const kept = still.objects.endpoints(service, 'near', 'far');
      const inside = podToClusterIp(service);
      const outside = outsideToNodePort(service);
      const stillCalls = [inside, outside].map((call) => ({ ...call, inOtherFamily: still.inOtherFamily }));
      const during = `while the endpoints of ${changing.name} change`;
      await underLoad(context, { id: `${still.name} meanwhile`, during, calls: stillCalls }, async () => {
        for (const pods of [['far2'], [], ['near', 'far']] as const) {
          await context.put({ endpoints: [...kept, ...changing.objects.endpoints(service, ...pods)] });
          const id = `${changing.name} with ${pods.length === 0 ? 'none' : pods.join(' and ')}`;
          const expect = (how: 'direct' | 'masqueraded') =>
            pods.length === 0 ? ({ kind: 'reject' } as const) : changing.objects.forward(pods, how);
          const { inOtherFamily } = changing;
          await context.see(
            { id: `${id}/clusterIP`, call: { ...inside, inOtherFamily }, expect: expect('direct') },
            { id: `${id}/nodePort`, call: { ...outside, inOtherFamily }, expect: expect('masqueraded') },
          );
        }
      });
    }
  },
};
