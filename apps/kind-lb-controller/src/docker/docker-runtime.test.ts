import { noopLogger, systemClock } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { exampleSpec } from '../testing/example-specs.ts';
import { type FakeAnswer, FakeEngine } from '../testing/fake-engine.ts';
import { containerName } from './container-names.ts';
import { DockerCli } from './docker-cli.ts';
import { DockerRuntime, type DockerRuntimeOptions } from './docker-runtime.ts';
import { EngineEvents } from './engine-events.ts';

const { signal } = new AbortController();
const spec = exampleSpec('web');
const name = containerName(spec.id);
const network = '[{"Name":"kind","IPAM":{"Config":[{"Subnet":"172.18.0.0/16"}]},"Containers":{}}]';
const quiet: readonly FakeAnswer[] = [
  { when: 'ps --quiet --filter *' },
  { when: 'events *', lasts: 60 },
  { when: 'network inspect kind', stdout: network },
  { when: 'image inspect *', stdout: '[{"Id":"sha256:1"}]' },
  { when: 'version *', stdout: '1.41\n' },
];

interface Fixture extends AsyncDisposable {
  readonly runtime: DockerRuntime;
  readonly engine: FakeEngine;
  readonly disturbed: unknown[];
  /** Actions on containers. */
  actions(): readonly string[];
}

function fixture(answers: readonly FakeAnswer[], changes: Partial<DockerRuntimeOptions> = {}): Fixture {
  const engine = new FakeEngine([...answers, ...quiet]);
  const cli = new DockerCli({ program: engine.program });
  const shared = { cli, clock: systemClock, log: noopLogger };
  const events = new EngineEvents({ ...shared, random: () => 0.5 });
  const disturbed: unknown[] = [];
  const listener = { onDisturbed: (which: unknown) => void disturbed.push(which), onTargetChange: () => undefined };
  const fixed = { network: 'kind', image: 'lb:1', pool: [], publishOn: undefined, isDiscovered: false } as const;
  const runtime = new DockerRuntime({ ...shared, events, listener, ...fixed, followsTargets: false, ...changes });
  return {
    runtime,
    engine,
    disturbed,
    actions: () =>
      engine.calls.map((call) => call.split(' ')[0] ?? '').filter((verb) => /^(run|start|exec|rm|stop)$/.test(verb)),
    async [Symbol.asyncDispose]() {
      await runtime[Symbol.asyncDispose]();
      await events[Symbol.asyncDispose]();
      engine[Symbol.dispose]();
    },
  };
}

const worker: FakeAnswer = { when: 'exec *', stdout: '{"status":"applied"}' };

describe('ensure', () => {
  test('of a new one makes a container and runs the worker: two commands, and none when nothing changed', async () => {
    await using site = fixture([{ when: 'run *', stdout: 'c1\n' }, worker]);
    expect(await site.runtime.ensure(spec, signal)).toMatchObject({ status: 'applied', where: `container ${name}` });
    expect(JSON.parse(site.engine.stdin)).toEqual({ command: 'apply', spec, isPublished: false });
    expect(await site.runtime.ensure(spec, signal)).toMatchObject({ status: 'unchanged' });
    expect(site.actions()).toEqual(['run', 'exec']);
  });

  test('forgets applied specs after a list: another controller may have led in between', async () => {
    const missing = { when: 'container inspect *', stdout: '[]', stderr: 'No such container: x', exitCode: 1 };
    const none = { when: 'ps --all *', stdout: '' };
    await using site = fixture([{ when: 'run *', stdout: 'c1\n' }, worker, missing, none]);
    await site.runtime.ensure(spec, signal);
    await site.runtime.list('another', signal);
    await site.runtime.ensure(spec, signal);
    expect(site.actions()).toEqual(['run', 'exec']);
    expect(await site.runtime.list(spec.id.cluster, signal)).toEqual([]);
    expect(await site.runtime.ensure(spec, signal)).toMatchObject({ status: 'applied' });
    expect(site.actions()).toEqual(['run', 'exec', 'run', 'exec']);
  });

  test.each([
    ['Docker 20.10', '1.41\n', '--network=kind'],
    ['Docker 28, which refuses --sysctl for one interface', '1.48\n', '--network=name=kind,driver-opt='],
    ['Podman under the name of docker', '5.4.0\n', '--network=kind'],
  ])('on %s makes a container that it takes', async (_, version, network) => {
    await using site = fixture([
      { when: 'version --format {{.Client.APIVersion}}', stdout: version },
      { when: 'run *', stdout: 'c1\n' },
      worker,
    ]);
    await site.runtime.ensure(spec, signal);
    const run = site.engine.calls.find((call) => call.startsWith('run ')) ?? '';
    expect(run).toContain(` ${network}`);
    expect(run.includes('--sysctl=net.ipv4.conf.eth0.')).toBe(network === '--network=kind');
  });

  test('of one that another process just made uses that, once it is of the same kind', async () => {
    const inUse = 'Conflict. The container name "/x" is already in use by container "c1"';
    await using site = fixture([
      { when: 'run *', stderr: inUse, exitCode: 125, times: 1 },
      { when: 'container inspect *', stdout: '[]', stderr: 'No such container: x', exitCode: 1 },
      { when: 'run *', stdout: 'c2\n' },
      worker,
    ]);
    expect(await site.runtime.ensure(spec, signal)).toMatchObject({ status: 'applied' });
    expect(site.actions()).toEqual(['run', 'run', 'exec']);
  });

  test('of one whose container does not live says so, and where to look', async () => {
    const gone = { when: 'exec *', stderr: 'Container c1 is not running', exitCode: 1 };
    const answers = [
      { when: 'run *', stdout: 'c1\n' },
      { when: 'container inspect *', stdout: '[]', stderr: 'No such container: x', exitCode: 1 },
      gone,
    ];
    await using site = fixture(answers, { clock: { ...systemClock, sleep: () => Promise.resolve() } });
    expect(await site.runtime.ensure(spec, signal)).toMatchObject({
      status: 'failed',
      reason: 'ContainerFailed',
      message: expect.stringMatching(
        new RegExp(`^container ${name} does not stay up: .*; look at 'docker logs ${name}'$`),
      ),
    });
  });

  test.each([
    [
      'the engine down',
      'Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?',
      'EngineUnreachable',
    ],
    ['a full disk', 'no space left on device', 'NoSpace'],
    ['a host port for others', 'cannot expose privileged port 80', 'HostPortTaken'],
    ['anything else', 'something new', 'ContainerFailed'],
  ])('with %s is a failure with a reason', async (_, stderr, reason) => {
    await using site = fixture([{ when: 'run *', stderr, exitCode: 125 }]);
    expect(await site.runtime.ensure(spec, signal)).toMatchObject({ status: 'failed', reason });
  });

  test('looks again at an image that was missing', async () => {
    const missing = { when: 'image inspect *', stdout: '[]', stderr: 'No such image: lb:1', exitCode: 1, times: 1 };
    await using site = fixture([missing, { when: 'run *', stdout: 'c1\n' }, worker]);
    expect(await site.runtime.ensure(spec, signal)).toMatchObject({ status: 'failed', reason: 'ImageNotFound' });
    expect(await site.runtime.ensure(spec, signal)).toMatchObject({ status: 'applied' });
  });

  test('that is aborted rejects with the reason', async () => {
    await using site = fixture([{ when: 'run *', lasts: 60 }]);
    const controller = new AbortController();
    const running = site.runtime.ensure(spec, controller.signal);
    setTimeout(() => controller.abort(new Error('enough')), 100);
    await expect(running).rejects.toThrow('enough');
  });
});

test('an event of its container disturbs a load balancer; those of others do not', async () => {
  const labels = { 'dev.switchyard.lb.cluster': spec.id.cluster, 'dev.switchyard.lb.service': spec.id.service };
  const event = (Action: string, ID: string): string =>
    `${JSON.stringify({ Type: 'container', Action, Actor: { ID, Attributes: labels } })}\n`;
  const events = [event('die', 'other'), event('create', 'c1'), event('die', 'c1'), event('start', 'c1')].join('');
  await using site = fixture([
    { when: 'run *', stdout: 'c1\n' },
    worker,
    { when: 'events *', stdout: events, isHeld: true, lasts: 60 },
  ]);
  await expect.poll(() => site.disturbed).toEqual(['all']);
  await site.runtime.ensure(spec, signal);
  site.engine.release();
  await expect.poll(() => site.disturbed).toEqual(['all', [spec.id]]);
});

test('a late start event is no disturbance: a restart follows a died event', async () => {
  const other = exampleSpec('other');
  const event = (Action: string, ID: string, { id }: typeof spec): string => {
    const labels = { 'dev.switchyard.lb.cluster': id.cluster, 'dev.switchyard.lb.service': id.service };
    return `${JSON.stringify({ Type: 'container', Action, Actor: { ID, Attributes: labels } })}\n`;
  };
  const stdout = event('start', 'c1', spec) + event('die', 'c2', other);
  await using site = fixture([
    { when: 'run *', stdout: 'c1\n', times: 1 },
    { when: 'run *', stdout: 'c2\n' },
    worker,
    { when: 'events *', stdout, isHeld: true, lasts: 60 },
  ]);
  await expect.poll(() => site.disturbed).toEqual(['all']);
  await site.runtime.ensure(spec, signal);
  await site.runtime.ensure(other, signal);
  site.engine.release();
  await expect.poll(() => site.disturbed.slice(1)).toContainEqual([other.id]);
  expect(site.disturbed).toEqual(['all', [other.id]]);
});

test('an engine that goes away and comes back disturbs all', async () => {
  const down = { when: 'ps --quiet --filter *', stderr: 'Cannot connect to the Docker daemon', exitCode: 1 };
  await using site = fixture([
    { when: 'ps --quiet --filter *', times: 1 },
    { when: 'events *', times: 1, stderr: 'unexpected EOF', exitCode: 1 },
    { ...down, times: 2 },
  ]);
  await expect.poll(() => site.disturbed).toEqual(['all', 'all']);
});
