import type { Expectation } from '@switchyard/scenarios';
import { outsideToNodePort, podToClusterIp } from './support/cast.ts';
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
  async run(play) {
    const { cast } = play;
    const ranges = (loadBalancerSourceRanges: readonly string[]) =>
      cast.service({ type: 'LoadBalancer', loadBalancerSourceRanges });
    const service = ranges([client]);
    await play.begin({ services: [service], endpoints: cast.endpoints(service, 'near', 'far') });
    const call = { service, by: 'loadBalancerIP', from: 'outside' } as const;
    const held = [await hold(play, call)];
    const all = cast.forward(['near', 'far'], 'masqueraded');
    const edits: readonly (readonly [string, readonly string[], Expectation])[] = [
      ['another host besides', [client, stranger], all],
      ['no ranges', [], all],
      ['another host alone', [stranger], { kind: 'drop' }],
      ['the client alone', [client], all],
    ];
    const calls = [outsideToNodePort(service), podToClusterIp(service)] as const;
    await underLoad(play, { id: 'unguarded', during: 'while source ranges are edited', calls }, async () => {
      for (const [name, given, expect] of edits) {
        await play.put({ services: [ranges(given)] });
        await play.see({ id: name, call, expect });
        await exchange(play, name, held);
      }
    });
    await release(held);
  },
};
