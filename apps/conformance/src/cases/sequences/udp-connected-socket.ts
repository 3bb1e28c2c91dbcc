import { type Call, callName } from './support/object-factory.ts';
import { type Move, seeMoved } from './support/moved.ts';
import type { Sequence } from './support/sequence.ts';
import type { SequenceContext } from './support/sequence-context.ts';
import { openUdpClient, type UdpSocketKind } from './support/udp-client.ts';

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
  const service = objects.service({ type: 'NodePort', protocol: 'UDP' });
  await context.begin({ services: [service], endpoints: objects.endpoints(service, 'near') });
  const calls: readonly Call[] = [
    { service, by: 'clusterIP', from: 'pod', sourcePort: firstPort },
    { service, by: 'clusterIP', from: 'node', sourcePort: firstPort + 1 },
    { service, by: 'nodePort', from: 'outside', sourcePort: firstPort + 2 },
  ];
  const clients = await Promise.all(
    calls.map(async (call) => ({ call, client: await openUdpClient(context, call, kind), name: callName(call) })),
  );
  const see = (moment: string, to: Move['to']): Promise<void> =>
    seeMoved(context, ...clients.map(({ name, call, client }) => ({ id: `${moment}/${name}`, call, client, to })));
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
