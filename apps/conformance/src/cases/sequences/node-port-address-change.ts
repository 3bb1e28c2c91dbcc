import type { ScenarioService } from '@switchyard/scenarios';
import { plainAgent, podToClusterIp } from './support/object-factory.ts';
import { underLoad } from './support/load.ts';
import type { SequenceContext } from './support/sequence-context.ts';
import type { Sequence } from './support/sequence.ts';

/**
 * The Node gets another address. kube-proxy only logs that, so its NodePorts are checked after a restart. A proxy that follows at once is
 * also correct: nothing is checked before.
 */
export const nodePortAddressChange: Sequence = {
  name: 'node-port-address-change',
  title:
    'NodePorts limited to the primary address are at the new one after a restart, and the cluster IP loses nothing',
  why: 'KubeProxyConfiguration nodePortAddresses: primary; kube-proxy-facts A9: a changed Node IP is only logged, fact 28: addresses are matched at the sync',
  tags: ['node-port', 'restart', 'load'],
  needs: ['changeNodes', 'configureProxy', 'controlProxy', 'load', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'NodePort' });
    await context.begin(
      { services: [service], endpoints: objects.endpoints(service, 'near') },
      { ...plainAgent, nodePortAddresses: 'primary' },
    );
    const moves = [
      { name: 'before', address: '172.18.0.11' },
      { name: 'changed', address: '172.18.0.200' },
      { name: 'changed back', address: '172.18.0.11' },
    ] as const;
    const calls = [podToClusterIp(service)];
    await underLoad(
      context,
      { id: 'inside', during: 'while the Node gets another address and back', calls },
      async () => {
        for (const { name, address } of moves) {
          if (name !== 'before') await move(context, address);
          await seePorts(context, { name, service, isFirst: address === '172.18.0.11' });
        }
      },
    );
  },
};

async function move(context: SequenceContext, nodeAddress: string): Promise<void> {
  await context.write({ nodeAddress });
  await context.proxy.stop();
  await context.startProxy();
}

interface Look {
  readonly name: string;
  readonly service: ScenarioService;
  readonly isFirst: boolean;
}

async function seePorts(context: SequenceContext, { name, service, isFirst }: Look): Promise<void> {
  const [there, elsewhere] = isFirst
    ? (['nodePort', 'secondNodePort'] as const)
    : (['secondNodePort', 'nodePort'] as const);
  await context.see(
    {
      id: `${name}/the address of the Node answers`,
      call: { service, by: there, from: 'outside' },
      expect: context.objects.forward(['near'], 'masqueraded'),
    },
    {
      id: `${name}/the other address does not`,
      call: { service, by: elsewhere, from: 'outside' },
      expect: { kind: 'pass' },
    },
  );
}
