import { type IpAddress } from '@switchyard/core';
import type { Call } from './support/object-factory.ts';
import { seenText } from '../../engine/probe-flow.ts';
import type { SequenceContext } from './support/sequence-context.ts';
import type { Sequence } from './support/sequence.ts';

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
    const make = (protocol: 'TCP' | 'UDP', first: number) =>
      Array.from({ length: services }, (_, index) =>
        objects.service({
          number: first + index,
          type: 'NodePort',
          protocol,
          sessionAffinityTimeoutSeconds: timeoutSeconds,
        }),
      );
    const byProtocol = { tcp: make('TCP', 1), udp: make('UDP', 1 + services) };
    const all = [...byProtocol.tcp, ...byProtocol.udp];
    const endpoints = all.flatMap((service) => objects.endpoints(service, 'near', 'near2', 'far', 'far2'));
    await context.begin({ services: all, endpoints });
    const clients = (['tcp', 'udp'] as const).flatMap((protocol) => [
      client(`${protocol}, pod by clusterIP`, byProtocol[protocol], { by: 'clusterIP', from: 'pod' }),
      client(`${protocol}, outside by nodePort`, byProtocol[protocol], { by: 'nodePort', from: 'outside' }),
      // its address is in the same network as the outside client's
      client(`${protocol}, node by clusterIP`, byProtocol[protocol], { by: 'clusterIP', from: 'node' }),
    ]);
    const first = await visit(context, clients);
    await context.sleep(visitInterval);
    const second = await visit(context, clients);
    await context.sleep(visitInterval);
    const third = await visit(context, clients);
    await context.sleep(absence);
    const late = await visit(context, clients);
    for (const [index, { name }] of clients.entries()) {
      const at = {
        first: first[index] ?? [],
        second: second[index] ?? [],
        third: third[index] ?? [],
        late: late[index] ?? [],
      };
      record(context, `${name}/within the timeout`, { wanted: 'the client stays', before: at.first, after: at.second });
      record(context, `${name}/within the timeout of the last visit`, {
        wanted: 'the client stays',
        before: at.first,
        after: at.third,
      });
      record(context, `${name}/after the timeout`, {
        wanted: 'the client chooses anew',
        before: at.third,
        after: at.late,
      });
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

function client(name: string, all: readonly Call['service'][], how: Pick<Call, 'by' | 'from'>): Client {
  return { name, calls: all.map((service) => ({ service, ...how })) };
}

/** Answering endpoints, by client and Service. */
async function visit(
  context: SequenceContext,
  clients: readonly Client[],
): Promise<readonly (readonly (IpAddress | string)[])[]> {
  return Promise.all(
    clients.map(({ calls }) =>
      Promise.all(
        calls.map(async (call) => {
          const [seen] = await (await context.connectorFor(call)).attempts(1);
          if (seen === undefined) return 'nothing';
          return seen.kind === 'endpoint' ? seen.address : seenText(seen);
        }),
      ),
    ),
  );
}

/** Each client has a session of its own. That two choose alike at all Services is as rare as that one finds all its old endpoints. */
function recordApart(context: SequenceContext, id: string, one: readonly string[], other: readonly string[]): void {
  const differing = one.filter((who, index) => who !== other[index]).length;
  context.record.check({
    id: `${id}/apart`,
    what: `first visits of two clients to ${one.length} Services`,
    expected: 'each client chooses for itself',
    observed: differing === 0 ? 'both were led alike' : 'each client chooses for itself',
    because: [`${differing} of ${one.length} led elsewhere`],
  });
}

interface Visits {
  readonly wanted: 'the client stays' | 'the client chooses anew';
  readonly before: readonly string[];
  readonly after: readonly string[];
}

function record(context: SequenceContext, id: string, { wanted, before, after }: Visits): void {
  const unanswered = [...before, ...after].filter((who) => !/[.:]/.test(who) || who.includes(' '));
  const moved = before.filter((who, index) => who !== after[index]).length;
  const what = `${before.length} Services with a timeout of ${timeoutSeconds} s, asked again`;
  const seen =
    moved === 0 ? 'the client stays' : wanted === 'the client stays' ? 'the client moves' : 'the client chooses anew';
  const observed = unanswered.length > 0 ? `not answered: ${[...new Set(unanswered)].toSorted().join(', ')}` : seen;
  context.record.check({
    id,
    what,
    expected: wanted,
    observed,
    because: [`${moved} of ${before.length} led elsewhere`],
  });
}
