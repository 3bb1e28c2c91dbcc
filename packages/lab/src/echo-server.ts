import type { LabHost, LabProcess } from './lab.ts';
import { nodeProgram } from './program-path.ts';

/** Identity and ports of an echo server. */
export interface EchoServerOptions {
  /** Pod name in its answers. */
  readonly pod: string;
  readonly node?: string;
  readonly http?: readonly number[];
  readonly tcp?: readonly number[];
  readonly udp?: readonly number[];
  /** Seconds from its start during which `/readyz` answers 503. Default 0. */
  readonly readyAfter?: number;
  /** Seconds from SIGTERM to its exit, during which it serves. Default 0. */
  readonly delayShutdown?: number;
  /** Listen on this address only. Default: all, both families. */
  readonly host?: string;
}

/** Returns the command line of an echo server. */
export function echoServerCommand(options: EchoServerOptions): {
  readonly file: string;
  readonly args: readonly string[];
} {
  const repeated = (['http', 'tcp', 'udp'] as const).flatMap((name) =>
    (options[name] ?? []).flatMap((port) => [`--${name}`, String(port)]),
  );
  const single = {
    '--pod': options.pod,
    '--node': options.node,
    '--host': options.host,
    '--ready-after': options.readyAfter,
    '--delay-shutdown': options.delayShutdown,
  };
  const given = Object.entries(single).flatMap(([flag, value]) => (value === undefined ? [] : [flag, String(value)]));
  return { file: process.execPath, args: [...nodeProgram('echo-server'), ...repeated, ...given] };
}

/** Starts an echo server in `host`. It listens after about 0.1 s; a probe shows when. */
export function startEchoServer(host: LabHost, options: EchoServerOptions): LabProcess {
  const { file, args } = echoServerCommand(options);
  return host.spawn(file, args, { logName: 'echo' });
}
