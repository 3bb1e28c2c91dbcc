import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { type EchoIdentity, serveHttp, serveTcp, serveUdp } from './echo-server.ts';
import { connectionHandlers } from './kept-connections.ts';
import { icmpCounterFiles, icmpErrorsHeldBack, portSequence, probe } from './probe.ts';
import { type LoadLoop, LoadResults, startLoadLoop } from './load-loop.ts';
import type { CallHandlers, ProbeResult } from './probe-types.ts';
import type { TrafficCalls, TrafficProbe } from './traffic-pod.ts';

/** Attempts to find a port that no other program on the host's network uses. */
const portAttempts = 20;

/** Time for the answer to a call that ends the program, in milliseconds. */
const lastMoment = 200;

/** The handlers of one pod, with its echo servers, connections and loads. */
export function createTrafficHandlers(identity: EchoIdentity): CallHandlers<TrafficCalls> {
  const freshPort = portSequence();
  const kept = connectionHandlers();
  return {
    hello: async () => ({ pod: identity.pod }),
    clock: async () => ({ now: performance.timeOrigin + performance.now() }),
    end: async () => {
      setTimeout(() => process.exit(0), lastMoment);
      return {};
    },
    addresses: async () => ({
      addresses: Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)),
    }),
    icmpErrors: async () => {
      const texts = await Promise.all(icmpCounterFiles.map((file) => readFile(file, 'utf8').catch(() => '')));
      const heldBack = icmpErrorsHeldBack(texts.join('\n'));
      return heldBack === undefined ? {} : { heldBack };
    },
    listen: createListening(identity),
    probe: async ({ probes, isOneByOne = false }) => {
      const one = (asked: TrafficProbe): Promise<ProbeResult> => fromFreePort(asked, freshPort);
      if (!isOneByOne) return { results: await Promise.all(probes.map(one)) };
      const results: ProbeResult[] = [];
      for (const asked of probes) results.push(await one(asked));
      return { results };
    },
    await: kept.await,
    open: kept.open,
    exchange: kept.exchange,
    close: kept.close,
    connect: kept.connect,
    ask: kept.ask,
    ...createLoads(),
  };
}

async function fromFreePort(asked: TrafficProbe, freshPort: () => number): Promise<ProbeResult> {
  if (asked.isFromFreshPort !== true) return probe(asked);
  for (let left = portAttempts; ; left--) {
    const result = await probe({ ...asked, sourcePort: freshPort() });
    if (result.status !== 'unreachable' || result.code !== 'EADDRINUSE' || left === 0) return result;
  }
}

function createListening(identity: EchoIdentity): CallHandlers<TrafficCalls>['listen'] {
  const servers = { http: serveHttp, tcp: serveTcp, udp: serveUdp } as const;
  const open = new Map<string, Promise<void>>();
  return async (ports) => {
    const failed: string[] = [];
    const listen = async (protocol: keyof typeof servers, port: number): Promise<void> => {
      const key = `${port}/${protocol}`;
      const opening = open.get(key) ?? servers[protocol](port, identity);
      open.set(key, opening);
      await opening.catch((error: NodeJS.ErrnoException) => {
        open.delete(key);
        failed.push(`${key}: ${error.code ?? error.message}`);
      });
    };
    const wanted = (['http', 'tcp', 'udp'] as const).flatMap((protocol) =>
      ports[protocol].map((port) => listen(protocol, port)),
    );
    await Promise.all(wanted);
    return { failed };
  };
}

const longestWait = 1000;

function createLoads(): CallHandlers<Pick<TrafficCalls, 'load' | 'loaded' | 'unload'>> {
  const loads = new Map<number, { readonly loop: LoadLoop; readonly results: LoadResults }>();
  return {
    load: async (options) => {
      const results = new LoadResults();
      const loop = startLoadLoop(options, (result) => results.add([result]));
      loads.set(loads.size + 1, { loop, results });
      void loop.finished.then(() => results.finish());
      return { load: loads.size };
    },
    loaded: async ({ load, from }) => {
      const results = loads.get(load)?.results;
      if (results === undefined) return { messages: [], isFinished: true };
      if (results.count <= from && !results.isFinished) {
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, longestWait)));
        await Promise.race([results.change, late]);
        clearTimeout(timer);
      }
      return { messages: results.since(from), isFinished: results.isFinished };
    },
    unload: async ({ load }) => {
      loads.get(load)?.loop.stop();
      return {};
    },
  };
}
