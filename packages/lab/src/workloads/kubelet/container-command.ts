import { basename } from 'node:path';
import type { Container, Pod } from '@switchyard/core/kubernetes';
import { echoServerCommand } from '../../echo-server.ts';
import type { TimeScale } from '../time-scale.ts';

/** Program of a container. */
export interface ContainerCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The echo server keeps its sockets open until it exits, so it stops accepting when it ends. */
  readonly isEchoServer: boolean;
}

const netexecPorts = { http: 8080, udp: 8081 };

/**
 * Returns the program of a container, since the lab has no images. `command` runs unchanged on this machine, in the pod's
 * network namespace. Everything else is the echo server: with `agnhost netexec` arguments (`--http-port`, `--udp-port`,
 * `--delay-shutdown`; and `--echo-port`, which agnhost lacks, for TCP connections that stay open; others are ignored) it
 * takes its ports from them, otherwise from the container's `ports`, or 8080/TCP. Only the echo server's `--delay-shutdown` follows the time scale.
 */
export function containerCommand(pod: Pod, container: Container, scale: TimeScale): ContainerCommand {
  const env = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value ?? '']));
  const [file, ...words] = container.command ?? [];
  const args = [...words, ...(container.args ?? [])];
  if (file !== undefined && basename(file) !== 'agnhost') return { file, args, env, isEchoServer: false };
  const isNetexec = args[0] === 'netexec';
  const flags = parseFlags(isNetexec ? args.slice(1) : args);
  const declared = (protocol: string): readonly number[] =>
    (container.ports ?? []).filter((port) => (port.protocol ?? 'TCP') === protocol).map((port) => port.containerPort);
  const ports = isNetexec ? { http: [netexecPorts.http], udp: [netexecPorts.udp] } : declaredOrDefault(declared);
  const echo = echoServerCommand({
    pod: pod.metadata.name ?? '',
    node: pod.spec?.nodeName ?? '',
    http: numberFlag(flags, 'http-port', ports.http),
    udp: numberFlag(flags, 'udp-port', ports.udp),
    tcp: numberFlag(flags, 'echo-port', []),
    delayShutdown: scale.of(Number(flags.get('delay-shutdown') ?? 0)) / 1000,
  });
  return { ...echo, env, isEchoServer: true };
}

function declaredOrDefault(declared: (protocol: string) => readonly number[]): {
  readonly http: readonly number[];
  readonly udp: readonly number[];
} {
  const [http, udp] = [declared('TCP'), declared('UDP')];
  return { http: http.length + udp.length === 0 ? [netexecPorts.http] : http, udp };
}

/** A port of -1 or 0 switches a server off, as in agnhost. */
function numberFlag(flags: ReadonlyMap<string, string>, name: string, otherwise: readonly number[]): readonly number[] {
  const value = flags.get(name);
  if (value === undefined) return otherwise;
  return Number(value) > 0 ? [Number(value)] : [];
}

/** `--name=value` and `--name value`; anything else is skipped. */
function parseFlags(args: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (const [index, arg] of args.entries()) {
    const [, name, value] = /^--?([a-z-]+)(?:=(.*))?$/.exec(arg) ?? [];
    if (name !== undefined) flags.set(name, value ?? args[index + 1] ?? '');
  }
  return flags;
}
