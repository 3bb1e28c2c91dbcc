import type { ScenarioService } from '@switchyard/scenarios';
import { type Move, openUdpClient, seeMoved, type UdpSocketKind } from './support/moved.ts';
import { type Call, callName, outsideToLoadBalancer, outsideToNodePort } from './support/object-factory.ts';
import { podToClusterIp } from './support/object-factory.ts';
import type { Sequence, SequenceContext } from './support/sequence-context.ts';

function clientsOf(service: ScenarioService, firstPort: number): readonly Call[] {
  return [
    { ...podToClusterIp(service), sourcePort: firstPort },
    { service, by: 'clusterIP', from: 'node', sourcePort: firstPort + 1 },
    { ...outsideToNodePort(service), sourcePort: firstPort + 2 },
  ];
}

/** Conntrack knows a UDP client by its port, and would send its datagrams to a removed pod as long as they continue. */
export const udpEndpointReplacement: Sequence = {
  name: 'udp-endpoint-replacement',
  title:
    'a UDP client that keeps its port follows its endpoint when that is replaced, also when there was none in between',
  why: 'kube-proxy-facts A1 row 32 (stale UDP connection tracking) and fact 66: Services with zero endpoints were left out from 1.32 to 1.36 (k/k#139628)',
  tags: ['udp', 'node-port', 'load-balancer'],
  needs: ['sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = await context.serve({ type: 'LoadBalancer', protocol: 'UDP' }, 'near');
    const calls = [...clientsOf(service, 9111), { ...outsideToLoadBalancer(service), sourcePort: 9114 }];
    const see = (moment: string, to: Move['to']): Promise<void> =>
      seeMoved(context, ...calls.map((call) => ({ id: `${moment}/${callName(call)}`, call, to })));
    await see('first', 'near');
    await context.put({ endpoints: objects.endpoints(service, 'far') });
    await see('replaced', 'far');
    await context.put({ endpoints: [] });
    await see('gone', 'refused');
    await context.put({ endpoints: objects.endpoints(service, 'near2') });
    await see('there again', 'near2');
  },
};

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
    await context.allocate([service]);
    const calls = clientsOf(service, 9141);
    // The result depends on the network and does not matter.
    await Promise.all(calls.map(async (call) => (await context.connectorFor(call)).attempts(1)));
    await context.put({ services: [service], endpoints: objects.endpoints(service, 'near') });
    await seeMoved(context, ...calls.map((call) => ({ id: callName(call), call, to: 'near' as const })));
  },
};

/** A socket that was translated when it was connected, so no rule sees its later datagrams. */
export const udpConnectedSocket: Sequence = {
  name: 'udp-connected-socket',
  title:
    'a client with a connected UDP socket stays at its endpoint while that serves, and gets another one after that',
  why: 'kube-proxy-facts A1 row 32: stale UDP flows are cleaned up; a dataplane that translates at connect must end sockets instead; fact 65: flows to an endpoint that serves are kept',
  tags: ['udp', 'hold-open', 'node-port'],
  needs: ['holdSockets', 'sendFromOutside'],
  run: (context) => follow(context, 'connected', 9121),
};

/** A socket that is translated with each datagram, and must see answers from the Service's address. */
export const udpUnconnectedSocket: Sequence = {
  name: 'udp-unconnected-socket',
  title:
    'a client whose UDP socket is not connected hears the Service it asked, stays at its endpoint while that serves, and gets another one after that',
  why: 'kube-proxy-facts A1 row 32: stale UDP flows are cleaned up; sendmsg and recvmsg: an answer comes from the address that was asked, however it was translated',
  tags: ['udp', 'hold-open', 'node-port'],
  needs: ['holdSockets', 'sendFromOutside'],
  run: (context) => follow(context, 'unconnected', 9131),
};

async function follow(context: SequenceContext, kind: UdpSocketKind, firstPort: number): Promise<void> {
  const { objects } = context;
  const service = await context.serve({ type: 'NodePort', protocol: 'UDP' }, 'near');
  const clients = await Promise.all(
    clientsOf(service, firstPort).map(async (call) => ({ call, client: await openUdpClient(context, call, kind) })),
  );
  const see = (moment: string, to: Move['to']): Promise<void> =>
    seeMoved(context, ...clients.map((one) => ({ id: `${moment}/${callName(one.call)}`, ...one, to })));
  await see('first', 'near');
  await context.put({ endpoints: objects.endpoints(service, 'far') });
  await see('replaced', 'far');
  const ending = objects.endpoint(service, 'far', 'serving-terminating');
  await context.put({ endpoints: [ending, ...objects.endpoints(service, 'near')] });
  await see('it ends, but serves', 'far');
  await context.put({ endpoints: [] });
  await context.put({ endpoints: objects.endpoints(service, 'near2') });
  await see('replaced with nobody in between', 'near2');
  await Promise.all(clients.map(({ client }) => client.close()));
}
