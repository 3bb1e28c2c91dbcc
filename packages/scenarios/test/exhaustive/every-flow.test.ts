import {
  cidrContains,
  type Frontend,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  loopbackAddress,
  parseCidr,
  parseIp,
  parsePort,
} from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import {
  allScenarios,
  clusterCidrs,
  firstState,
  nextState,
  nodeAddresses,
  restartText,
  runOnBackend,
  runOnTable,
  type Scenario,
  type ScenarioFlow,
  type ScenarioStep,
  ScenarioTables,
  secondNodeAddresses,
} from '../../src/index.ts';
import { harnesses } from '../unit/harnesses.ts';

const { signal } = new AbortController();

/** A scenario expects something of chosen flows. Here the rendered rules must agree with `explain` about all its flows. */
describe.each(harnesses)('the rendering: what $name renders does with every flow what explain says', (harness) => {
  const runs = allScenarios(harness.dataplane)
    .filter(({ runs }) => runs.kinds.includes('rendering'))
    .map((scenario) => ({ title: `${scenario.id} ${scenario.ipFamily}`, scenario }));

  test.for(runs)('$title', { timeout: 60_000 }, async ({ scenario }) => {
    const thorough = withEveryFlow(scenario);
    const explained = runOnTable(thorough).steps;
    const result = await runOnBackend(thorough, harness, {}, signal);
    const rendered = result.steps.filter(({ step }) => step !== restartText);
    expect(rendered).toHaveLength(explained.length);
    const wrong = explained.flatMap(({ line, step, observed }, index) => {
      const found = rendered[index]?.observed;
      if (found === observed || isDroppedSctp(scenario, step, found)) return [];
      return [`after line ${line}: ${step}: ${found} instead of ${observed}`];
    });
    expect(wrong).toEqual([]);
  });

  test('twenty times as many flows as the scenarios look at', () => {
    const count = (some: readonly Scenario[]): number =>
      some.flatMap(({ steps }) => steps).filter(({ kind }) => kind === 'flow').length;
    const own = runs.map(({ scenario }) => scenario);
    expect(count(own.map(withEveryFlow))).toBeGreaterThan(20 * count(own));
  });
});

/** Rules beside eBPF programs know the cluster IPs of SCTP Services alone and drop what they should refuse. */
function isDroppedSctp({ dataplane }: Scenario, step: string, found: string | undefined): boolean {
  return dataplane.translation === 'sockets' && step.endsWith('/SCTP') && found === 'drop';
}

/** The same changes; after each, instead of the scenario's own flows, every flow to a frontend of any of its states. */
function withEveryFlow(scenario: Scenario): Scenario {
  const changes = scenario.steps.filter(({ kind }) => kind !== 'flow' && kind !== 'healthCheck');
  const flows = everyFlow(scenario, changes);
  const looks = (line: number): readonly ScenarioStep[] => flows.map((flow) => ({ kind: 'flow', flow, line }));
  return { ...scenario, steps: [...looks(0), ...changes.flatMap((step) => [step, ...looks(step.line)])] };
}

type Place = Pick<ScenarioFlow, 'to' | 'port' | 'protocol'>;
type Sender = Pick<ScenarioFlow, 'from' | 'fromEndpoint' | 'isFromItself'>;

function everyFlow(scenario: Scenario, changes: readonly ScenarioStep[]): readonly ScenarioFlow[] {
  const all = new ScenarioTables(scenario);
  const places = new Map<string, { readonly place: Place; readonly kind: Frontend['kind'] }>();
  const pods = new Set<IpAddress>();
  let state = firstState(scenario);
  for (const step of [undefined, ...changes]) {
    state = step === undefined ? state : nextState(state, step);
    for (const [family, { services }] of all.update(state)) {
      for (const { frontends, protocol } of services.values()) {
        for (const { kind, address, port } of frontends) {
          for (const to of address === 'anyNodePortAddress' ? nodePortAddresses(family) : [address]) {
            // The next port is free, unless it is another frontend's.
            for (const one of [port, parsePort(port + 1)]) {
              places.set(`${to} ${one} ${protocol}`, { place: { to, port: one, protocol }, kind });
            }
          }
        }
      }
    }
    for (const { ip, node } of state.endpoints) if (node === 'node1' && isPod(ip)) pods.add(ip);
  }
  return [...places.values()].flatMap(({ place, kind }) =>
    sendersTo(place.to, { kind, pods }).map((sender) => ({ ...sender, ...place, ...unused })),
  );
}

/** With `drop` observations name ports. */
const unused = { sourcePort: undefined, expect: { kind: 'drop' }, kept: undefined } as const;

function nodePortAddresses(family: IpFamily): readonly IpAddress[] {
  const own = [nodeAddresses[family]['node1'] ?? '', secondNodeAddresses[family]];
  return [...own.map((text) => parseIp(text)), loopbackAddress(family)];
}

function isPod(address: IpAddress): boolean {
  return cidrContains(parseCidr(clusterCidrs[ipFamilyOf(address)]), address);
}

interface Target {
  readonly kind: Frontend['kind'];
  /** Endpoints on the node under test. */
  readonly pods: ReadonlySet<IpAddress>;
}

function sendersTo(to: IpAddress, { kind, pods }: Target): readonly Sender[] {
  const sender = { fromEndpoint: undefined, isFromItself: false };
  const node: Sender = { from: 'node', ...sender };
  if (to === loopbackAddress(ipFamilyOf(to))) return [node];
  return [
    node,
    { from: 'pod', ...sender },
    { from: 'outside', ...sender },
    ...(kind === 'externalIP' || kind === 'loadBalancerIP' ? [{ ...node, isFromItself: true }] : []),
    ...[...pods]
      .filter((ip) => ipFamilyOf(ip) === ipFamilyOf(to))
      .map((ip): Sender => ({ from: 'pod', fromEndpoint: ip, isFromItself: false })),
  ];
}
