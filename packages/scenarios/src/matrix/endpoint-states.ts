import { type IpAddress, parsePort } from '@switchyard/core';
import { inFamily } from '../other-family.ts';
import type { Scenario, ScenarioEndpoint } from '../scenario.ts';

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

/** Every state of the matrix. `terminating` alone means: still serving; `stopped`: terminating and no longer serving. */
export const endpointStates: readonly EndpointState[] = [
  { id: 'none', words: 'there is no endpoint', members: [] },
  { id: 'not-ready', words: 'no endpoint is ready', members: [local('notReady'), remote('notReady')] },
  { id: 'ready-local-only', words: 'the only endpoint is ready and here', members: [local('ready')] },
  { id: 'ready-remote-only', words: 'the only endpoint is ready and elsewhere', members: [remote('ready')] },
  {
    id: 'ready-both',
    words: 'one endpoint is ready here and one elsewhere',
    members: [local('ready'), remote('ready')],
  },
  {
    id: 'terminating-local-beside-ready-remote',
    words: 'the one here terminates and one elsewhere is ready',
    members: [local('terminating'), remote('ready')],
  },
  {
    id: 'terminating-remote-beside-ready-local',
    words: 'the one elsewhere terminates and one here is ready',
    members: [remote('terminating'), local('ready')],
  },
  { id: 'terminating-local-only', words: 'the only endpoint is here and terminates', members: [local('terminating')] },
  {
    id: 'terminating-remote-only',
    words: 'the only endpoint is elsewhere and terminates',
    members: [remote('terminating')],
  },
  {
    id: 'terminating-both',
    words: 'all endpoints terminate, here and elsewhere',
    members: [local('terminating'), remote('terminating')],
  },
  {
    id: 'stopped-beside-ready',
    words: 'the one here terminates without serving and one elsewhere is ready',
    members: [local('stopped'), remote('ready')],
  },
  {
    id: 'stopped-beside-terminating',
    words: 'the one here terminates without serving and one elsewhere terminates',
    members: [local('stopped'), remote('terminating')],
  },
  { id: 'stopped-alone', words: 'the only endpoint terminates without serving', members: [local('stopped')] },
];

const conditions: Readonly<Record<Condition, Pick<ScenarioEndpoint, 'ready' | 'serving' | 'terminating'>>> = {
  ready: { ready: true, serving: true, terminating: false },
  notReady: { ready: false, serving: false, terminating: false },
  terminating: { ready: false, serving: true, terminating: true },
  stopped: { ready: false, serving: false, terminating: true },
};

/** The endpoints of a Service in a state. Ready ones have another address than others on the same node. */
export function endpointsOf(
  state: EndpointState,
  service: string,
  ipFamily: Scenario['ipFamily'],
): readonly ScenarioEndpoint[] {
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
  return {
    service,
    ip,
    node,
    port: parsePort(8080),
    ...conditions[is],
    zoneHints: [],
    nodeHints: [],
    slice: '1',
  };
}
