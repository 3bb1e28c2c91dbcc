import { HostError } from '@switchyard/core';

/** Kind of failure, from the engine's message. */
export type CliFailureKind =
  /** The program is not installed. */
  | 'programMissing'
  | 'timedOut'
  /** No process answers on the engine's socket. */
  | 'engineDown'
  /** Access to the engine's socket is denied. */
  | 'notPermitted'
  /** The engine does not speak with a program that old. */
  | 'programTooOld'
  | 'noSuchContainer'
  | 'noSuchNetwork'
  | 'noSuchImage'
  /** Another container has the name. */
  | 'nameInUse'
  /** A host port to publish is in use. */
  | 'portInUse'
  /** The container is there, but does not run. */
  | 'notRunning'
  | 'noSpace'
  | 'other';

/** A command of the engine that did not do its work. */
export interface CliFailure {
  readonly kind: CliFailureKind;
  /** For people: the program and its arguments, long ones cut. */
  readonly command: string;
  /** Undefined when it did not run to its end. */
  readonly exitCode: number | undefined;
  /** The last lines that it wrote to stderr. */
  readonly stderr: string;
}

/** Docker's, Podman's and nerdctl's words, the more special first. */
const words: readonly (readonly [CliFailureKind, RegExp])[] = [
  [
    'notPermitted',
    /permission denied while trying to connect|connect: permission denied|rootless containerd not running/i,
  ],
  ['programTooOld', /client version \S+ is too old/i],
  [
    'engineDown',
    /cannot connect to the docker daemon|failed to connect to the docker api|cannot connect to podman|cannot access containerd socket|error during connect|is the docker daemon running|unable to connect to podman socket/i,
  ],
  ['noSpace', /no space left on device/i],
  ['nameInUse', /container name .* is already in use|name ".*" is already used/i],
  [
    'portInUse',
    /port is already allocated|address already in use|cannot expose privileged port|ports are not available/i,
  ],
  ['noSuchNetwork', /no such network|network \S+ not found|network not found|no network found matching/i],
  ['noSuchImage', /no such image|image not known|unable to find image|image ".*": not found|no image found/i],
  ['noSuchContainer', /no such container|no container with name or id/i],
  ['notRunning', /is not running|container state improper|cannot exec in a stopped/i],
];

/** Kind of failure in a command's stderr. */
export function classifyFailure(stderr: string): CliFailureKind {
  return words.find(([, pattern]) => pattern.test(stderr))?.[0] ?? 'other';
}

/** Per kind, a CamelCase reason for conditions, and advice for the operator. */
export const failureMeanings: Readonly<Record<CliFailureKind, { readonly reason: string; readonly advice: string }>> = {
  programMissing: {
    reason: 'EngineProgramNotFound',
    advice: 'install it, or name another one with --container-engine',
  },
  timedOut: { reason: 'EngineTimeout', advice: 'it was stopped; is the engine overloaded?' },
  engineDown: {
    reason: 'EngineUnreachable',
    advice: 'start the engine, set DOCKER_HOST to where it listens, or mount its socket if this is a container',
  },
  notPermitted: {
    reason: 'EngineNotPermitted',
    advice: "run as a user who may use the engine's socket (for Docker: root, or a member of the group docker)",
  },
  programTooOld: {
    reason: 'EngineProgramTooOld',
    advice:
      "use a newer program, or set the environment variable DOCKER_API_VERSION to the engine's minimum, such as 1.44",
  },
  noSuchContainer: {
    reason: 'ContainerFailed',
    advice: 'it is gone; it will be made again if it is still needed',
  },
  noSuchNetwork: {
    reason: 'NetworkNotFound',
    advice: 'create a kind cluster, which makes the network, or name its network with --network',
  },
  noSuchImage: { reason: 'ImageNotFound', advice: 'pull or build the image, or name another one with --image' },
  nameInUse: { reason: 'ContainerNameTaken', advice: 'remove that container if it is not of switchyard-lb' },
  portInUse: {
    reason: 'HostPortTaken',
    advice: 'another program has the port on this machine; stop it, or do without --publish-ports',
  },
  notRunning: { reason: 'ContainerFailed', advice: 'it will be started again' },
  noSpace: { reason: 'NoSpace', advice: "make room on the engine's disk (docker system df, docker system prune)" },
  other: { reason: 'ContainerFailed', advice: 'what ran before runs on; it will be tried again' },
};

/** One line: what was tried, the command, what came back, what to do. */
export function failureMessage(attempt: string, failure: CliFailure): string {
  const { kind, command, exitCode, stderr } = failure;
  const line = lastLine(stderr);
  const how =
    kind === 'programMissing'
      ? 'there is no such program'
      : exitCode === undefined
        ? 'it did not end in time'
        : `it exited with ${exitCode}`;
  const said = line === '' ? '' : ` and said: ${line}`;
  return `${attempt}: ${command}: ${how}${said}; ${failureMeanings[kind].advice}`;
}

/** A command of the container engine failed. The code is `docker.<kind>`. */
export class CliError extends HostError {
  override readonly name = 'CliError';
  readonly failure: CliFailure;

  constructor(attempt: string, failure: CliFailure) {
    super(`docker.${failure.kind}`, failureMessage(attempt, failure));
    this.failure = failure;
  }
}

/** The last line that says something; Docker follows an error with a hint to its help, or with a summary. */
function lastLine(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(See '|Run '|Error: failed to start containers: )/.test(line));
  return (lines.at(-1) ?? '').slice(0, 500);
}
