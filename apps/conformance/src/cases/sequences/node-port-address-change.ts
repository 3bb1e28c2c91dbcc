import type { ScenarioService } from '@switchyard/scenarios';
import { plainAgent, podToClusterIp } from './support/cast.ts';
import { underLoad } from './support/load.ts';
import type { Play } from './support/play.ts';
import type { Sequence } from './support/sequence.ts';

/**
 * The Node gets another address. kube-proxy only logs that, so the answers of its NodePorts count after a restart; what follows at once
 * may do so: nothing is looked at before.
 */
export const nodePortAddressChange: Sequence = {
  name: 'node-port-address-change',
  title:
    'NodePorts limited to the primary address are at the new one after a restart, and the cluster IP loses nothing',
  why: 'KubeProxyConfiguration nodePortAddresses: primary; kube-proxy-facts A9: a changed Node IP is only logged, fact 28: addresses are matched at the sync',
  tags: ['node-port', 'restart', 'load'],
  needs: ['changeNodes', 'configureProxy', 'controlProxy', 'load', 'sendFromOutside'],
  async run(play) {
    const { cast } = play;
    const service = cast.service({ type: 'NodePort' });
    await play.begin(
      { services: [service], endpoints: cast.endpoints(service, 'near') },
      { ...plainAgent, nodePortAddresses: 'primary' },
    );
    const moves = [
      { name: 'before', address: '172.18.0.11' },
      { name: 'changed', address: '172.18.0.200' },
      { name: 'changed back', address: '172.18.0.11' },
    ] as const;
    const calls = [podToClusterIp(service)];
    await underLoad(play, { id: 'inside', during: 'while the Node gets another address and back', calls }, async () => {
      for (const { name, address } of moves) {
        if (name !== 'before') await move(play, address);
        await seePorts(play, { name, service, isFirst: address === '172.18.0.11' });
      }
    });
  },
};

async function move(play: Play, nodeAddress: string): Promise<void> {
  await play.write({ nodeAddress });
  await play.proxy.stop();
  await play.startProxy();
}

interface Look {
  readonly name: string;
  readonly service: ScenarioService;
  readonly isFirst: boolean;
}

async function seePorts(play: Play, { name, service, isFirst }: Look): Promise<void> {
  const [there, elsewhere] = isFirst
    ? (['nodePort', 'secondNodePort'] as const)
    : (['secondNodePort', 'nodePort'] as const);
  await play.see(
    {
      id: `${name}/the address of the Node answers`,
      call: { service, by: there, from: 'outside' },
      expect: play.cast.forward(['near'], 'masqueraded'),
    },
    {
      id: `${name}/the other address does not`,
      call: { service, by: elsewhere, from: 'outside' },
      expect: { kind: 'pass' },
    },
  );
}
