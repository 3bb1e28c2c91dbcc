import { createFillers, createService, inParallel } from '../big-cluster.ts';
import type { PeersOptions } from './options.ts';
import { emptyFigures, type PeerFigures } from './peer-figures.ts';
import { peersOf, versionOf } from './peer.ts';
import { type ClusterPods, measuredNames, type MeasuredServices, takeTurn } from './peer-turn.ts';
import { type PeersLab, createPeersLab } from './peers-lab.ts';
import type { PeersReport } from './report.ts';

/** Surroundings of a run. */
export interface PeersRun {
  /** Of the lab: [a-z0-9]{1,8}. */
  readonly labName: string;
  /** Our own version, such as a commit. */
  readonly version: string;
  /** Called with each step. */
  readonly progress: (text: string) => void;
}

/**
 * Measures all proxies at all sizes. The proxies take turns, in another order each round, so that a change of the machine's load
 * meets all of them.
 */
export async function runPeers(options: PeersOptions, run: PeersRun, signal: AbortSignal): Promise<PeersReport> {
  const date = new Date().toISOString();
  const versions = await versionsOf(options, run.version);
  const figures: PeerFigures[] = [];
  let left: readonly string[] = [];
  for (const services of options.sizes) {
    run.progress(`${services} Services: filling the API server`);
    await using peersLab = await createPeersLab(run.labName, peersOf(options), options, signal);
    ({ left } = peersLab);
    figures.push(...(await measureSize({ peersLab, services, options, run }, signal)));
  }
  const { rounds, changes, churn, burst, connects, minSyncPeriod, patience, machine } = options;
  return {
    date,
    machine,
    versions,
    apiServer: options.apiServer === undefined ? 'lab' : 'kube-apiserver',
    options: { rounds, changes, churn, burst, connects, minSyncPeriod, patience },
    left,
    figures,
  };
}

interface SizeRun {
  readonly peersLab: PeersLab;
  readonly services: number;
  readonly options: PeersOptions;
  readonly run: PeersRun;
}

async function measureSize(
  { peersLab, services, options, run }: SizeRun,
  signal: AbortSignal,
): Promise<readonly PeerFigures[]> {
  const start = performance.now();
  const { burst, rounds } = options;
  const measured = await createServices(peersLab, services, burst, signal);
  const pods: ClusterPods = { moved: 'a', burst: 'a' };
  const all = peersLab.places.map((place) => ({ place, figures: emptyFigures(place.peer.name, services) }));
  for (let round = 0; round < rounds; round++) {
    const first = round % all.length;
    for (const { place, figures } of [...all.slice(first), ...all.slice(0, first)]) {
      if (figures.late.length > 0 || figures.failure !== undefined) continue;
      const about = `${services} Services, turn ${round + 1} of ${rounds}, ${place.peer.name}`;
      const progress = (text: string): void => run.progress(`${about}: ${text}`);
      const isLast = round === rounds - 1;
      await takeTurn({ peersLab, place, services: measured, pods, options, figures, isLast, progress }, signal);
    }
  }
  run.progress(`${services} Services: done in ${((performance.now() - start) / 1000).toFixed(0)} s`);
  return all.map(({ figures }) => figures);
}

/** The moved Service comes last. */
async function createServices(
  { api, addresses }: PeersLab,
  services: number,
  burst: number,
  signal: AbortSignal,
): Promise<MeasuredServices> {
  await createFillers(api, { services }, signal);
  const burstIps: string[] = [];
  await inParallel(burst, async (index) => {
    burstIps[index] = await createService(api, measuredNames.burst(index), [addresses.a], signal);
  });
  const connect = await createService(api, measuredNames.connect, [addresses.c], signal);
  const moved = await createService(api, measuredNames.moved, [addresses.a], signal);
  return { moved, burst: burstIps, connect };
}

async function versionsOf({ kubeProxy, apiServer }: PeersOptions, own: string): Promise<PeersReport['versions']> {
  const versions: Record<string, string> = { 'kube-proxy': await versionOf(kubeProxy) };
  if (apiServer !== undefined) {
    versions['kube-apiserver'] = await versionOf(apiServer.kubeApiserver);
    versions['etcd'] = await versionOf(apiServer.etcd);
  }
  return { ...versions, switchyard: own };
}
