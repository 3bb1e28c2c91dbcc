import { millis, parseIp } from '@switchyard/core';
import type { Container, Pod } from '@switchyard/core/kubernetes';
import { ManualClock, settle } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { timeScale } from '../facts.ts';
import { containerCommand, createDeadline, sleepOf } from './container-runner.ts';
import { type ContainerState, podStatus, type PodView } from './pod-status.ts';
import { createReadinessTracker, followReadiness } from './readiness.ts';

const pod: Pod = { metadata: { name: 'p' }, spec: { nodeName: 'n', containers: [] } };

test.each<{ what: string; container: Partial<Container>; expected: string }>([
  { what: 'no arguments, no ports', container: {}, expected: '--http 8080 --pod p --node n --delay-shutdown 0' },
  {
    what: 'declared ports',
    container: { ports: [{ containerPort: 1 }, { containerPort: 2, protocol: 'UDP' }] },
    expected: '--http 1 --udp 2 --pod p --node n --delay-shutdown 0',
  },
  {
    what: 'agnhost without flags',
    container: { args: ['netexec'] },
    expected: '--http 8080 --udp 8081 --pod p --node n --delay-shutdown 0',
  },
  {
    what: 'agnhost with flags',
    container: { args: ['netexec', '--http-port=80', '--udp-port', '-1', '--delay-shutdown=30', '--tls-cert-file=x'] },
    expected: '--http 80 --pod p --node n --delay-shutdown 3',
  },
  {
    what: 'agnhost as a command',
    container: { command: ['/agnhost', 'netexec'], args: ['--http-port', '81'] },
    expected: '--http 81 --udp 8081 --pod p --node n --delay-shutdown 0',
  },
])('$what: the echo server', ({ container, expected }) => {
  const { args, isEchoServer } = containerCommand(pod, { name: 'c', ...container }, timeScale(0.1));
  expect(isEchoServer).toBe(true);
  expect(args.slice(args.indexOf('--http')).join(' ')).toBe(expected);
});

test('a command runs as it is, with the environment of the container', () => {
  const container = { name: 'c', command: ['/bin/app', '-a'], args: ['-b'], env: [{ name: 'K', value: 'v' }] };
  expect(containerCommand(pod, container, timeScale(1))).toEqual({
    file: '/bin/app',
    args: ['-a', '-b'],
    env: { K: 'v' },
    isEchoServer: false,
  });
});

test.each([
  { command: ['sleep', '15'], expected: 15 },
  { command: ['/bin/sleep', '1.5'], expected: 1.5 },
  { command: ['/bin/sh', '-c', 'sleep 5s'], expected: 5 },
  { command: ['sh', '-c', 'sleep 5; echo'], expected: undefined },
  { command: ['nginx', '-s', 'quit'], expected: undefined },
  { command: [], expected: undefined },
])('$command sleeps for $expected s', ({ command, expected }) => {
  expect(sleepOf(command)).toBe(expected);
});

test.each([
  { what: 'one success is enough by default', probe: {}, results: '+', expected: '+' },
  { what: 'three failures are needed by default', probe: {}, results: '+--+---+', expected: '++++++-+' },
  {
    what: 'thresholds count in a row',
    probe: { successThreshold: 2, failureThreshold: 1 },
    results: '+-++-',
    expected: '---+-',
  },
])('$what', ({ probe, results, expected }) => {
  const tracker = createReadinessTracker(probe);
  const shown = [...results].map((result) => {
    tracker.record(result === '+');
    return tracker.isReady ? '+' : '-';
  });
  expect(shown.join('')).toBe(expected);
});

test('probes come after the initial delay and then every period, scaled; a rejected attempt is a failure', async () => {
  const clock = new ManualClock();
  const attempts: number[] = [];
  const changes: [number, boolean][] = [];
  const stop = new AbortController();
  const following = followReadiness(
    {
      probe: { initialDelaySeconds: 5, periodSeconds: 10, failureThreshold: 2 },
      attempt: async () => {
        attempts.push(clock.now());
        if (clock.now() >= 2500) throw new Error('refused');
        return true;
      },
      onChange: (isReady) => changes.push([clock.now(), isReady]),
      scale: timeScale(0.1),
      clock,
    },
    stop.signal,
  );
  await clock.advance(4000);
  stop.abort();
  await following;
  expect(attempts).toEqual([500, 1500, 2500, 3500]);
  expect(changes).toEqual([
    [500, true],
    [3500, false],
  ]);
});

test('a deadline can move closer but not away', async () => {
  const clock = new ManualClock();
  const deadline = createDeadline(clock, millis(100));
  let reachedAt = -1;
  const reached = deadline.reached(new AbortController().signal).then(() => {
    reachedAt = clock.now();
  });
  deadline.shorten(millis(500));
  await clock.advance(10);
  deadline.shorten(millis(50));
  await settle();
  await clock.advance(100);
  await reached;
  expect([reachedAt, clock.sleeping]).toEqual([50, 0]);
});

const running: ContainerState = { kind: 'running', startedAt: millis(0) };
const killed: ContainerState = { kind: 'ended', startedAt: millis(0), endedAt: millis(1000), result: 'SIGKILL' };

test.each([
  { what: 'a new pod', state: { kind: 'waiting', reason: 'ContainerCreating' }, phase: 'Pending', ready: 'False' },
  { what: 'a running pod that is not ready', state: running, phase: 'Running', ready: 'False' },
  { what: 'a ready pod', state: running, isReady: true, phase: 'Running', ready: 'True' },
  { what: 'a crashed pod', state: killed, phase: 'Running', ready: 'False' },
  {
    what: 'a pod in back-off',
    state: { kind: 'waiting', reason: 'CrashLoopBackOff' },
    phase: 'Running',
    ready: 'False',
  },
  { what: 'a pod that was killed for good', state: killed, isOver: true, phase: 'Failed', ready: 'False' },
  { what: 'a pod that ended well', state: { ...killed, result: 0 }, isOver: true, phase: 'Succeeded', ready: 'False' },
] as const)('$what is $phase, Ready $ready', ({ phase, ready, ...rest }) => {
  const status = podStatus(pod, viewOf(rest));
  expect([status.phase, status.conditions?.find(({ type }) => type === 'Ready')?.status]).toEqual([phase, ready]);
});

test('transition times move only with the status, other conditions stay, addresses come in both forms', () => {
  const first = podStatus(pod, viewOf({ state: running }));
  const gate = { type: 'example.com/gate', status: 'True' } as const;
  const later: Pod = { ...pod, status: { ...first, conditions: [...(first.conditions ?? []), gate] } };
  const second = podStatus(later, { ...viewOf({ state: running, isReady: true }), now: millis(9000) });
  expect(
    second.conditions?.map(({ type, status, lastTransitionTime: at }) => [type, status, at?.slice(17, 19)]),
  ).toEqual([
    ['PodReadyToStartContainers', 'True', '00'],
    ['Initialized', 'True', '00'],
    ['Ready', 'True', '09'],
    ['ContainersReady', 'True', '09'],
    ['PodScheduled', 'True', '00'],
    ['example.com/gate', 'True', undefined],
  ]);
  expect([second.podIP, second.podIPs, second.hostIP, second.startTime]).toEqual([
    '10.244.1.2',
    [{ ip: '10.244.1.2' }, { ip: 'fd00::2' }],
    '172.18.0.11',
    '1970-01-01T00:00:00Z',
  ]);
});

test('a closed readiness gate keeps a pod from being ready', () => {
  const gated: Pod = { ...pod, spec: { containers: [], readinessGates: [{ conditionType: 'g' }] } };
  const status = podStatus(gated, viewOf({ state: running, isReady: true }));
  expect(
    status.conditions?.filter(({ type }) => type.endsWith('Ready')).map(({ type, status: value }) => [type, value]),
  ).toEqual([
    ['Ready', 'False'],
    ['ContainersReady', 'True'],
  ]);
});

interface View {
  readonly state: ContainerState;
  readonly isReady?: boolean;
  readonly isOver?: boolean;
}

function viewOf({ state, isReady = false, isOver = false }: View): PodView {
  return {
    containers: [{ name: 'c', image: 'i', state, isReady, restartCount: 0 }],
    podIps: [parseIp('10.244.1.2'), parseIp('fd00::2')],
    hostIps: [parseIp('172.18.0.11')],
    isOver,
    now: millis(0),
  };
}
