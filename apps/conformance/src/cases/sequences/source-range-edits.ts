import type { Expectation } from '@switchyard/scenarios';
import { outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import { exchange, hold, release } from './support/held.ts';
import { underLoad } from './support/load.ts';
import type { Sequence } from './support/sequence.ts';

const client = '172.18.0.100/32';
const stranger = '172.18.0.50/32';

/** Source ranges change while packets flow. */
export const sourceRangeEdits: Sequence = {
  name: 'source-range-edits',
  title: 'edited source ranges count for the next connection to the load-balancer IP, and for nothing else',
  why: 'API: loadBalancerSourceRanges; kube-proxy facts 21 (NodePorts stay open), 53 and 54 (established connections go on)',
  tags: ['source-ranges', 'load', 'load-balancer', 'node-port'],
  needs: ['load', 'holdConnections', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const ranges = (loadBalancerSourceRanges: readonly string[]) =>
      objects.service({ type: 'LoadBalancer', loadBalancerSourceRanges });
    const service = ranges([client]);
    await context.begin({ services: [service], endpoints: objects.endpoints(service, 'near', 'far') });
    const call = { service, by: 'loadBalancerIP', from: 'outside' } as const;
    const held = [await hold(context, call)];
    const all = objects.forward(['near', 'far'], 'masqueraded');
    const edits: readonly (readonly [string, readonly string[], Expectation])[] = [
      ['another host besides', [client, stranger], all],
      ['no ranges', [], all],
      ['another host alone', [stranger], { kind: 'drop' }],
      ['the client alone', [client], all],
    ];
    const calls = [outsideToNodePort(service), podToClusterIp(service)] as const;
    await underLoad(context, { id: 'unguarded', during: 'while source ranges are edited', calls }, async () => {
      for (const [name, given, expect] of edits) {
        await context.put({ services: [ranges(given)] });
        await context.see({ id: name, call, expect });
        await exchange(context, name, held);
      }
    });
    await release(held);
  },
};
