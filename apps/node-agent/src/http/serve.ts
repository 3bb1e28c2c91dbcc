import { aborted, type Clock, HostError, ipFamilyOf, type Logger, seconds } from '@switchyard/core';
import { type HttpHandler, type HttpListener, type HttpSocket, type ListenTarget } from '@switchyard/core/health';
import type { BindTarget } from '../config/run-config.ts';

/** One server of the agent. */
export interface ServerOptions {
  /** For logs and errors, such as `healthz`. */
  readonly name: string;
  readonly target: BindTarget;
  /** Flag that sets another port, such as `--healthz-bind-address`. */
  readonly flag: string;
  readonly handler: HttpHandler;
  /** The first failure to listen ends it with an error (`bindAddressHardFail`). */
  readonly hardFail: boolean;
  /** Called once, when it cannot listen for the first time. */
  readonly onFailure: (error: HostError) => void;
  readonly listener: HttpListener;
  readonly clock: Clock;
  readonly logger: Logger;
}

const retryInterval = seconds(5);

/**
 * Serves until aborted. If the port is unavailable, it retries every five seconds, without effect on the dataplane. With
 * `hardFail` it rejects with `HostError` instead.
 */
export async function serve(options: ServerOptions, signal: AbortSignal): Promise<void> {
  await using socket = await open(options, signal);
  if (socket !== undefined) await aborted(signal);
}

async function open(options: ServerOptions, signal: AbortSignal): Promise<HttpSocket | undefined> {
  const { name, target, listener, clock, logger } = options;
  let hasFailed = false;
  while (!signal.aborted) {
    try {
      const socket = await listener.listen(listenTarget(target), options.handler);
      logger.info(`${name} listens`, { address: target.address, port: target.port });
      return socket;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      if (!hasFailed) options.onFailure(error);
      if (options.hardFail) throw hardFailure(options, error);
      if (!hasFailed) logger.warn(`${name} cannot listen, will retry`, { error, ...adviceFor(error, options.flag) });
      hasFailed = true;
      await clock.sleep(retryInterval, signal).catch(() => undefined); // the loop sees the abort
    }
  }
  return undefined;
}

/** As in Go, the unspecified address means all addresses of both families. */
function listenTarget({ address, port }: BindTarget): ListenTarget {
  const isAny = address === '0.0.0.0' || address === '::';
  return isAny ? { ipFamily: 'both', address: 'any', port } : { ipFamily: ipFamilyOf(address), address, port };
}

/** kube-proxy is the likely owner of its own ports; if it runs, it overwrites the agent's rules. */
function adviceFor({ message }: HostError, flag: string): { readonly advice?: string } {
  if (!message.includes('address already in use')) return {};
  return {
    advice: `another program uses the port: if kube-proxy still runs on this node, stop it, because it restores its rules; otherwise set another ${flag}`,
  };
}

function hardFailure({ name, flag }: ServerOptions, cause: HostError): HostError {
  const message = `the ${name} server ${cause.message}, and bindAddressHardFail is set: free the port or give another ${flag}`;
  return new HostError('host.hardFail', message, { cause });
}
