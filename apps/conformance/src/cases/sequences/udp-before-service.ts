import { type Call, callName } from './support/object-factory.ts';
import { seeMoved } from './support/moved.ts';
import type { Sequence } from './support/sequence.ts';

/** Conntrack keeps the first, untranslated datagram of a flow, and would translate none after it. */
export const udpBeforeService: Sequence = {
  name: 'udp-before-service',
  title: 'a UDP client that began before there was a Service, and keeps its port, is answered once there is one',
  why: 'kube-proxy-facts A1 row 32: stale UDP flows are cleaned up; a flow that was never translated is one, for connection tracking decides about a flow once',
  tags: ['udp', 'node-port'],
  needs: ['sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'NodePort', protocol: 'UDP' });
    await context.begin({ services: [], endpoints: [] });
    const calls: readonly Call[] = [
      { service, by: 'clusterIP', from: 'pod', sourcePort: 9141 },
      { service, by: 'clusterIP', from: 'node', sourcePort: 9142 },
      { service, by: 'nodePort', from: 'outside', sourcePort: 9143 },
    ];
    // The result depends on the network and does not matter.
    await Promise.all(calls.map(async (call) => (await context.connectorFor(call)).attempts(1)));
    await context.put({ services: [service], endpoints: objects.endpoints(service, 'near') });
    await seeMoved(context, ...calls.map((call) => ({ id: callName(call), call, to: 'near' as const })));
  },
};
