import { type IpAddress, type IpFamily, parsePort } from '@switchyard/core';
import { inFamily } from '../other-family.ts';
import type { ScenarioEndpoint } from '../scenario.ts';

/** Conditions of an endpoint, in the words of KEP-1672. */
export type Condition = 'ready' | 'notReady' | 'terminating' | 'stopped';

/** An endpoint of the matrix: its node and its conditions. */
interface Member {
  readonly node: 'node1' | 'node2';
  readonly is: Condition;
}

/** Endpoints of a Service in one row of the matrix. `node1` is the node under test. */
export interface EndpointState {
  /** Part of the case's id. */
  readonly id: string;
  /** Ends the sentence "a frontend, where ...". */
  readonly words: string;
  readonly members: readonly Member[];
}

const local = (is: Condition): Member => ({ node: 'node1', is });
const remote = (is: Condition): Member => ({ node: 'node2', is });
const state = (id: string, words: string, ...members: readonly Member[]): EndpointState => ({ id, words, members });

/** Every state of the matrix. `terminating` alone means: still serving; `stopped`: terminating and no longer serving. */
export const endpointStates: readonly EndpointState[] = [
  state('none', 'there is no endpoint'),
  state('not-ready', 'no endpoint is ready', local('notReady'), remote('notReady')),
  state('ready-local-only', 'the only endpoint is ready and here', local('ready')),
  state('ready-remote-only', 'the only endpoint is ready and elsewhere', remote('ready')),
  state('ready-both', 'one endpoint is ready here and one elsewhere', local('ready'), remote('ready')),
  state(
    'terminating-local-beside-ready-remote',
    'the one here terminates and one elsewhere is ready',
    local('terminating'),
    remote('ready'),
  ),
  state(
    'terminating-remote-beside-ready-local',
    'the one elsewhere terminates and one here is ready',
    remote('terminating'),
    local('ready'),
  ),
  state('terminating-local-only', 'the only endpoint is here and terminates', local('terminating')),
  state('terminating-remote-only', 'the only endpoint is elsewhere and terminates', remote('terminating')),
  state('terminating-both', 'all endpoints terminate, here and elsewhere', local('terminating'), remote('terminating')),
  state(
    'stopped-beside-ready',
    'the one here terminates without serving and one elsewhere is ready',
    local('stopped'),
    remote('ready'),
  ),
  state(
    'stopped-beside-terminating',
    'the one here terminates without serving and one elsewhere terminates',
    local('stopped'),
    remote('terminating'),
  ),
  state('stopped-alone', 'the only endpoint terminates without serving', local('stopped')),
];

const conditions: Readonly<Record<Condition, Pick<ScenarioEndpoint, 'ready' | 'serving' | 'terminating'>>> = {
  ready: { ready: true, serving: true, terminating: false },
  notReady: { ready: false, serving: false, terminating: false },
  terminating: { ready: false, serving: true, terminating: true },
  stopped: { ready: false, serving: false, terminating: true },
};

/** The endpoints of a Service in a state. Ready ones have another address than others on the same node. */
export function endpointsOf(state: EndpointState, service: string, ipFamily: IpFamily): readonly ScenarioEndpoint[] {
  return state.members.map(({ node, is }) => {
    const v4 = `10.244.${node === 'node1' ? 1 : 2}.${is === 'ready' ? 5 : 6}`;
    return endpointAt(inFamily(v4, ipFamily), { service, node, is });
  });
}

/** An endpoint at an address. */
export function endpointAt(
  ip: IpAddress,
  { service, node, is }: Member & Pick<ScenarioEndpoint, 'service'>,
): ScenarioEndpoint {
  const plain = { port: parsePort(8080), zoneHints: [], nodeHints: [], slice: '1' };
  return { service, ip, node, ...conditions[is], ...plain };
}
