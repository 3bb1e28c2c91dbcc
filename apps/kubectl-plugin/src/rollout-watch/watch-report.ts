import { millis, type Millis } from '@switchyard/core';
import type { Service } from '@switchyard/core/kubernetes';
import type { PathReport, RolloutReport } from '../rollout/rollout-report.ts';
import { type ChangeApply, changeApplies } from './apply-delays.ts';
import { explainRequests, type LostRequest } from './loss-causes.ts';
import type { PacketLoss, PodTimes, RolloutRecording, WatchedNode } from './recording.ts';

/** Requests of the plug-in, and the prediction for their way. */
export interface RequestsReport {
  readonly url: string;
  /** Requests a second. */
  readonly rate: number;
  readonly sent: number;
  readonly lost: readonly LostRequest[];
  /** The predicted path that the requests took; undefined if no prediction has one. */
  readonly path: PathReport | undefined;
  /** Whether the measured loss is within the predicted interval; undefined without a path or an end. */
  readonly isPredicted: boolean | undefined;
}

/** A rollout that was watched. All times are milliseconds of this machine's clock. */
export interface WatchReport {
  readonly namespace: string;
  readonly deployment: string;
  readonly begin: Millis;
  /** Undefined: the rollout did not end in time. */
  readonly end: Millis | undefined;
  readonly nodes: readonly WatchedNode[];
  readonly pods: readonly PodTimes[];
  readonly changes: readonly ChangeApply[];
  readonly packets: readonly PacketLoss[];
  readonly requests: RequestsReport | undefined;
  /** Made from the objects before the rollout; undefined if there can be none. */
  readonly prediction: RolloutReport | undefined;
  /** Whether the rollout ended, every request was answered, and no agent saw a lost packet. */
  readonly isLossless: boolean;
}

/** Surroundings of a report. */
export interface WatchSubject {
  readonly namespace: string;
  readonly deployment: string;
  readonly services: readonly Service[];
  readonly prediction: RolloutReport | undefined;
  /** Undefined: no requests were sent. */
  readonly load: { readonly url: URL; readonly rate: number } | undefined;
}

/** Delay where neither an agent nor a prediction knows one. */
const unknownDelay = millis(5000);

/** Joins a recording with the prediction. */
export function watchReport(recording: RolloutRecording, subject: WatchSubject): WatchReport {
  const { namespace, deployment, prediction } = subject;
  const { begin, end, nodes, pods, packets } = recording;
  const requests = requestsReport(recording, subject);
  return {
    namespace,
    deployment,
    begin,
    end,
    nodes,
    pods,
    changes: changeApplies(recording),
    packets,
    requests,
    prediction,
    isLossless: end !== undefined && packets.length === 0 && (requests?.lost.length ?? 0) === 0,
  };
}

function requestsReport(recording: RolloutRecording, subject: WatchSubject): RequestsReport | undefined {
  const { load, services, prediction } = subject;
  if (load === undefined || recording.requests === undefined) return undefined;
  const { rate, url } = load;
  const place = placeOf(url, services);
  const path =
    place && prediction?.paths.find(({ service, clients }) => service === place.service && clients === place.clients);
  const delay = path?.mustServe ?? prediction?.proxyTiming.noticesTerminating.longest ?? unknownDelay;
  const service = place?.service ?? services[0]?.metadata.name ?? '';
  const lost = explainRequests(recording, { service, delay });
  const isPredicted =
    path === undefined || recording.end === undefined
      ? undefined
      : lost.length >= path.requests.least && lost.length <= path.requests.most;
  return { url: url.href, rate, sent: recording.requests.length, lost, path, isPredicted };
}

/** The Service that a URL leads to, and by which side. Undefined: no address, port or name of these Services. */
export function placeOf(
  { hostname, port }: URL,
  services: readonly Service[],
): Pick<PathReport, 'service' | 'clients'> | undefined {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  for (const { metadata, spec, status } of services) {
    const { name = '', namespace = '' } = metadata;
    const inside = [...(spec?.clusterIPs ?? []), spec?.clusterIP, `${name}.${namespace}`, `${name}.${namespace}.svc`];
    if (inside.includes(host) || host.startsWith(`${name}.${namespace}.svc.`))
      return { service: name, clients: 'inside' };
    const balanced = (status?.loadBalancer?.ingress ?? []).flatMap((one) => [one.ip, one.hostname]);
    const outside = [...balanced, ...(spec?.externalIPs ?? [])];
    const isNodePort = spec?.ports?.some(({ nodePort }) => nodePort !== undefined && nodePort === Number(port));
    if (outside.includes(host) || isNodePort === true) return { service: name, clients: 'outside' };
  }
  return undefined;
}
