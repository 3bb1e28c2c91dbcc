import type { ScenarioService } from '@switchyard/scenarios';
import { seenText } from '../../engine/probe-flow.ts';
import { type Call, outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import type { Sequence, SequenceContext } from './support/sequence-context.ts';

/** Session affinity timeout of every Service here, in seconds. */
const timeoutSeconds = 3;

/** Interval of visits within the timeout. Twice this is more than the timeout, so each visit must renew the session. */
const visitInterval = 1600;

/** Time without a visit after which a session must have expired. Kernels check at least once a second. */
const absence = timeoutSeconds * 1000 + 1500;

/**
 * A forgotten client chooses among four endpoints and may find its old one again. That all of these do has a probability
 * of 4 to the power of -10, one in a million.
 */
const services = 10;

/** Clients keep their endpoints while they connect within the timeout, and no longer. */
export const affinityTimeouts: Sequence = {
  name: 'affinity-timeouts',
  title: 'a client stays at its endpoint while it comes within the timeout, and chooses anew after it',
  why: 'API: sessionAffinityConfig.clientIP.timeoutSeconds, counted from the last connection; kube-proxy-facts A1 row 26',
  tags: ['affinity', 'udp', 'node-port'],
  needs: ['sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const make = (protocol: 'TCP' | 'UDP', first: number): readonly ScenarioService[] =>
      Array.from({ length: services }, (_, index) => {
        const affinity = { sessionAffinityTimeoutSeconds: timeoutSeconds };
        return objects.service({ number: first + index, type: 'NodePort', protocol, ...affinity });
      });
    const byProtocol = { tcp: make('TCP', 1), udp: make('UDP', 1 + services) };
    const all = [...byProtocol.tcp, ...byProtocol.udp];
    const endpoints = all.flatMap((service) => objects.endpoints(service, 'near', 'near2', 'far', 'far2'));
    await context.begin({ services: all, endpoints });
    const allClients = (['tcp', 'udp'] as const).flatMap((protocol): readonly Client[] => {
      const own = byProtocol[protocol];
      return [
        { name: `${protocol}, pod by clusterIP`, calls: own.map(podToClusterIp) },
        { name: `${protocol}, outside by nodePort`, calls: own.map(outsideToNodePort) },
        // its address is in the same network as the outside client's
        {
          name: `${protocol}, node by clusterIP`,
          calls: own.map((service) => ({ service, by: 'clusterIP', from: 'node' })),
        },
      ];
    });
    const clients = allClients.filter(({ name, calls: [call] }) => {
      const because = call === undefined ? undefined : context.obstacleOf(call);
      if (because !== undefined) context.record.skip({ id: name, because });
      return because === undefined;
    });
    const first = await visit(context, clients);
    await context.sleep(visitInterval);
    const second = await visit(context, clients);
    await context.sleep(visitInterval);
    const third = await visit(context, clients);
    await context.sleep(absence);
    const late = await visit(context, clients);
    for (const [index, { name }] of clients.entries()) {
      const see = (moment: string, wanted: Wanted, before: readonly Visit[], after: readonly Visit[]): void =>
        record(context, `${name}/${moment}`, { wanted, before: before[index] ?? [], after: after[index] ?? [] });
      see('within the timeout', 'the client stays', first, second);
      see('within the timeout of the last visit', 'the client stays', first, third);
      see('after the timeout', 'the client chooses anew', third, late);
    }
    for (const [index, { name, calls }] of clients.entries()) {
      for (const [other, { name: otherName, calls: otherCalls }] of clients.entries()) {
        if (other <= index || calls[0]?.service !== otherCalls[0]?.service) continue;
        recordApart(context, `${name} and ${otherName}`, first[index] ?? [], first[other] ?? []);
      }
    }
  },
};

/** A client: one host and kind of frontend, with a call to each of the Services. */
interface Client {
  readonly name: string;
  readonly calls: readonly Call[];
}

type Wanted = 'the client stays' | 'the client chooses anew';

/** Endpoint that answered each of a client's calls, or what happened instead. */
type Visit = readonly string[];

async function visit(context: SequenceContext, clients: readonly Client[]): Promise<readonly Visit[]> {
  const ask = async (call: Call): Promise<string> => {
    const [seen] = await (await context.connectorFor(call)).attempts(1);
    if (seen === undefined) return 'nothing';
    return seen.kind === 'endpoint' ? seen.address : seenText(seen);
  };
  return Promise.all(clients.map(({ calls }) => Promise.all(calls.map(ask))));
}

/** Each client has a session of its own. That two choose alike at all Services is as rare as that one finds all its old endpoints. */
function recordApart(context: SequenceContext, id: string, one: Visit, other: Visit): void {
  const differing = one.filter((who, index) => who !== other[index]).length;
  context.record.check({
    id: `${id}/apart`,
    what: `first visits of two clients to ${one.length} Services`,
    expected: 'each client chooses for itself',
    observed: differing === 0 ? 'both were led alike' : 'each client chooses for itself',
    because: [`${differing} of ${one.length} led elsewhere`],
  });
}

function record(
  context: SequenceContext,
  id: string,
  { wanted, before, after }: { readonly wanted: Wanted; readonly before: Visit; readonly after: Visit },
): void {
  const unanswered = [...before, ...after].filter((who) => !/[.:]/.test(who) || who.includes(' '));
  const moved = before.filter((who, index) => who !== after[index]).length;
  const what = `${before.length} Services with a timeout of ${timeoutSeconds} s, asked again`;
  const change = wanted === 'the client stays' ? 'the client moves' : 'the client chooses anew';
  const seen = moved === 0 ? 'the client stays' : change;
  const observed = unanswered.length > 0 ? `not answered: ${[...new Set(unanswered)].toSorted().join(', ')}` : seen;
  const because = [`${moved} of ${before.length} led elsewhere`];
  context.record.check({ id, what, expected: wanted, observed, because });
}
