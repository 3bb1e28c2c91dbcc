import { expect, test } from 'vitest';
import { checkIdOf, matrixCases, scenarioCases } from './scenario-cases.ts';

const cases = matrixCases({ dataplane: 'nftables' });

test('a case of the matrix is named by frontend, policy, endpoint state and family', () => {
  const one = cases.find(({ id }) => id === 'matrix/nodePort/Local/ready-remote-only/ipv6');
  expect(one).toMatchObject({
    title:
      'a NodePort with externalTrafficPolicy Local, where the only endpoint is ready and elsewhere: ' +
      'a pod and the node reach the one elsewhere; a client outside gets no answer',
    why: 'API: externalTrafficPolicy Local of a NodePort; EndpointSlice condition ready',
    tags: ['matrix', 'tcp', 'udp', 'sctp', 'node-port', 'etp-local'],
    families: 'IPv6',
    needs: ['sendFromOutside', 'sctp'],
  });
});

test('its checks are source by protocol', () => {
  const [one] = cases;
  expect(one?.scenario.steps.map((step) => checkIdOf(one.scenario, step))).toEqual([
    'pod/tcp',
    'pod/udp',
    'pod/sctp',
    'node/tcp',
    'node/udp',
    'node/sctp',
    'outside/tcp',
    'outside/udp',
    'outside/sctp',
  ]);
});

test('what changes nothing can be in the cluster together, and nothing else', () => {
  const changing = cases.filter(({ scenario }) =>
    scenario.steps.some((step) => checkIdOf(scenario, step) === undefined),
  );
  expect(changing.map(({ id }) => id)).toEqual(['matrix/ending-orders/ipv4', 'matrix/ending-orders/ipv6']);
  expect(cases.filter(({ batch }) => batch === undefined)).toEqual(changing);
});

test('every check of a case has an id of its own', () => {
  for (const { id, scenario } of cases) {
    const ids = scenario.steps.flatMap((step) => checkIdOf(scenario, step) ?? []);
    expect(new Set(ids).size, id).toBe(ids.length);
  }
});

test('where the cluster changes, the id of a check says after how much', () => {
  const one = cases.find(({ id }) => id === 'matrix/ending-orders/ipv4');
  const ids = one?.scenario.steps.flatMap((step) => checkIdOf(one.scenario, step) ?? []);
  expect(ids?.[0]).toBe('after 0 changes: outside to 198.51.100.160:80/TCP');
  expect(ids?.at(-1)).toBe('after 36 changes: IPv4 health check of matrix/ending-eheheh-v4');
});

test('the checks of a scenario file are its lines, and steps that change have none', () => {
  const one = scenarioCases({ dataplane: 'nftables', cell: 'dual' }).find(({ id }) => id === 'scenario/restart/ipv4');
  const ids = one?.scenario.steps.map((step) => [step.kind, checkIdOf(one.scenario, step)]) ?? [];
  expect(ids.filter(([, id]) => id !== undefined).map(([kind]) => kind)).toContain('restartAgent');
  expect(ids.filter(([kind, id]) => (kind?.startsWith('put') ?? false) && id !== undefined)).toEqual([]);
  expect(new Set(ids.flatMap(([, id]) => (id === undefined ? [] : [id.replace(/\d+/, 'N')])))).toEqual(
    new Set(['line N']),
  );
});
