import { describe, expect, test } from 'vitest';
import { classifyFailure, type CliFailureKind, failureMeanings, failureMessage } from './cli-failure.ts';

const texts: readonly (readonly [string, string, CliFailureKind])[] = [
  [
    'Docker that does not run',
    'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
    'engineDown',
  ],
  [
    'Docker 29 that does not run',
    'failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the daemon is running',
    'engineDown',
  ],
  [
    'Podman machine that does not run',
    'Cannot connect to Podman. Please verify your connection to the Linux system using `podman system connection list`',
    'engineDown',
  ],
  ['containerd that does not run', 'level=fatal msg="cannot access containerd socket"', 'engineDown'],
  [
    'a socket for others',
    'Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "http://x": dial unix /var/run/docker.sock: connect: permission denied',
    'notPermitted',
  ],
  [
    'Docker 29 and a program of Docker 20.10',
    'Error response from daemon: client version 1.41 is too old. Minimum supported API version is 1.44, please upgrade your client to a newer version',
    'programTooOld',
  ],
  ["Docker's missing network", 'Error response from daemon: network nosuch not found', 'noSuchNetwork'],
  ["Docker's missing network, inspected", 'Error: No such network: nosuch', 'noSuchNetwork'],
  [
    "Podman's missing network",
    'Error: inspecting object: network nosuch: unable to find network with name or ID nosuch: network not found',
    'noSuchNetwork',
  ],
  ["nerdctl's missing network", 'level=fatal msg="no network found matching: nosuch"', 'noSuchNetwork'],
  ["Docker's missing image", 'Error response from daemon: No such image: nosuch:1', 'noSuchImage'],
  ["Podman's missing image", 'Error: inspecting object: nosuch:1: image not known', 'noSuchImage'],
  ["nerdctl's missing image", 'level=fatal msg="image \\"nosuch\\": not found"'.replaceAll('\\"', '"'), 'noSuchImage'],
  ["Docker's missing container", 'Error response from daemon: No such container: x', 'noSuchContainer'],
  ["Podman's missing container, looked at", 'Error: inspecting object: no such container x', 'noSuchContainer'],
  ["Podman's missing container", 'Error: no container with name or ID "x" found: no such container', 'noSuchContainer'],
  [
    "Docker's name in use",
    'docker: Error response from daemon: Conflict. The container name "/x" is already in use by container "c1f9". You have to remove (or rename) that container to be able to reuse that name.',
    'nameInUse',
  ],
  [
    "Podman's name in use",
    'Error: creating container storage: the container name "x" is already in use by c1f9. You have to remove that container to be able to reuse that name: that name is already in use',
    'nameInUse',
  ],
  ["nerdctl's name in use", 'level=fatal msg="name "x" is already used by ID "c1f9""', 'nameInUse'],
  [
    "Docker's host port that is taken",
    'Error response from daemon: driver failed programming external connectivity on endpoint x (9dcd): Bind for 127.0.0.1:8080 failed: port is already allocated',
    'portInUse',
  ],
  ["another program's host port", 'listen tcp4 127.0.0.1:80: bind: address already in use', 'portInUse'],
  [
    'a port that is not for users',
    'Error: rootlessport cannot expose privileged port 80, you can add net.ipv4.ip_unprivileged_port_start=80',
    'portInUse',
  ],
  ['a container that does not run', 'Error response from daemon: Container 807f is not running', 'notRunning'],
  [
    "Podman's container that does not run",
    'Error: can only create exec sessions on running containers: container state improper',
    'notRunning',
  ],
  ['a full disk', 'Error response from daemon: mkdir /var/lib/docker/x: no space left on device', 'noSpace'],
  ['anything else', 'Error response from daemon: something new', 'other'],
];

test.each(texts)('%s is classified', (_, stderr, kind) => {
  expect(classifyFailure(stderr)).toBe(kind);
  expect(failureMeanings[kind].advice).not.toBe('');
});

describe('a message', () => {
  const failure = { kind: 'noSuchNetwork', command: 'docker network inspect kind', exitCode: 1 } as const;

  test('says what was tried, the command, the exit, the last line, and what to do', () => {
    const stderr = '[]\nError: No such network: kind\n';
    expect(failureMessage('cannot look at network kind', { ...failure, stderr })).toBe(
      'cannot look at network kind: docker network inspect kind: it exited with 1 and said: Error: No such network: kind; ' +
        'create a kind cluster, which makes the network, or name its network with --network',
    );
  });

  test("leaves Docker's hints out", () => {
    const stderr =
      "docker: Error response from daemon: no.\nSee 'docker run --help'.\nError: failed to start containers: x\n";
    expect(failureMessage('x', { ...failure, stderr })).toContain('and said: docker: Error response from daemon: no.;');
  });

  test('of a program that is missing names it', () => {
    const missing = { kind: 'programMissing', command: 'podman ps', exitCode: undefined, stderr: '' } as const;
    expect(failureMessage('cannot list containers', missing)).toBe(
      'cannot list containers: podman ps: there is no such program; install it, or name another one with --container-engine',
    );
  });
});
