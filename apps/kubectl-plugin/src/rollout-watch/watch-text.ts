import type { Millis } from '@switchyard/core';
import { clientsText, intervalText, throughText } from '../rollout/report-text.ts';
import type { PathReport } from '../rollout/rollout-report.ts';
import { textTable } from '../text-table.ts';
import type { ChangeApply } from './apply-delays.ts';
import type { LostRequest } from './loss-causes.ts';
import type { PacketLoss, PodTimes } from './recording.ts';
import type { RequestsReport, WatchReport } from './watch-report.ts';

/** A report for people. Ends with a newline. */
export function watchText(report: WatchReport): string {
  const { begin, nodes, pods, changes, packets, requests } = report;
  const watched = nodes.filter(({ accuracy }) => accuracy !== undefined).length;
  return [
    headText(report),
    podsText(pods, begin),
    changesText(changes, { begin, watched }),
    packetsText(packets, begin),
    requests === undefined ? '' : requestsText(requests, begin),
    predictionText(report),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

/** The result, the watched nodes and the accuracy of the times. */
function headText({ namespace, deployment, begin, end, nodes }: WatchReport): string {
  const result = end === undefined ? 'did not end in time' : `ended after ${((end - begin) / 1000).toFixed(1)} s`;
  const known = nodes.flatMap(({ accuracy }) => (accuracy === undefined ? [] : [accuracy]));
  const observers = nodes.filter(({ isObserver }) => isObserver).length;
  const blind = nodes.filter(({ blindness }) => blindness !== undefined);
  return [
    `Deployment ${namespace}/${deployment}: the rollout of ${new Date(begin).toISOString()} ${result}`,
    'clock: of this machine; pods and EndpointSlices have the time at which kubectl printed them',
    known.length === 0
      ? "no agent was watched: nodes' applies and lost packets are not known"
      : `nodes: ${known.length} with an agent, whose times are right to ${Math.ceil(Math.max(...known))} ms`,
    ...(observers === 0
      ? []
      : [`${observers} of them observe another proxy, which applies a change later than they do`]),
    ...blind.map(({ node, blindness }) => `${node}: lost packets are not known: ${blindness}`),
    '',
  ].join('\n');
}

/** A time after the begin of the rollout. */
export function sinceText(at: Millis, begin: Millis): string {
  const after = (at - begin) / 1000;
  return `${after < 0 ? '' : '+'}${after.toFixed(3)} s`;
}

function podsText(pods: readonly PodTimes[], begin: Millis): string {
  const cell = (at: Millis | undefined, missing: string): string => (at === undefined ? missing : sinceText(at, begin));
  return textTable(
    ['POD', 'NODE', 'CREATED', 'READY', 'DELETED', 'REMOVED'],
    pods.map(({ name, node, isFormer, created, ready, deleted, removed }) => [
      name,
      node ?? '-',
      cell(created, 'before'),
      cell(ready, isFormer ? 'before' : '-'),
      cell(deleted, '-'),
      cell(removed, '-'),
    ]),
  );
}

interface ChangesContext {
  readonly begin: Millis;
  /** Number of nodes with an agent. */
  readonly watched: number;
}

function changesText(changes: readonly ChangeApply[], { begin, watched }: ChangesContext): string {
  if (changes.length === 0) return '';
  const isSeen = watched > 0;
  return textTable(
    ['SERVICE', 'ENDPOINT', 'POD', 'CHANGE', 'ENDPOINTSLICE', ...(isSeen ? ['NODES', 'SLOWEST', 'APPLIED AFTER'] : [])],
    changes.map(({ service, address, pod = '-', condition, at, slowest, applied }) => [
      service,
      address,
      pod,
      condition,
      sinceText(at, begin),
      ...(isSeen
        ? [
            `${applied} of ${watched}`,
            slowest?.node ?? '-',
            slowest === undefined ? '-' : `${(slowest.delay / 1000).toFixed(3)} s`,
          ]
        : []),
    ]),
  );
}

function packetsText(packets: readonly PacketLoss[], begin: Millis): string {
  if (packets.length === 0) return '';
  const rows = grouped(packets, ({ node, service, cause, why }) => [node, service, cause, why]).map((group) => {
    const [first] = group;
    const count = group.reduce((sum, one) => sum + one.count, 0);
    const likely = first.certainty === 'likely' ? 'likely: ' : '';
    const times = [sinceText(first.at, begin), sinceText((group.at(-1) ?? first).at, begin)];
    return [...times, first.node, first.service, String(count), first.cause, `${likely}${first.why}`];
  });
  return `Lost packets, as the agents reported them:\n${textTable(['FROM', 'TO', 'NODE', 'SERVICE', 'COUNT', 'CAUSE', 'WHY'], rows)}`;
}

function requestsText({ url, rate, sent, lost }: RequestsReport, begin: Millis): string {
  const head = `Requests: ${sent} to ${url}, ${rate} a second, ${lost.length} lost\n`;
  return lost.length === 0
    ? head
    : `${head}${textTable(['FROM', 'TO', 'LOST', 'OUTCOME', 'CAUSE', 'WHY'], lostRows(lost, begin))}`;
}

/** Lost requests by outcome and cause, each with the time of the first and the last one. */
function lostRows(lost: readonly LostRequest[], begin: Millis): readonly (readonly string[])[] {
  return grouped(lost, ({ outcome, cause, why }) => [outcome, cause, why]).map((group) => {
    const [{ sentAt, outcome, cause, why }] = group;
    const to = (group.at(-1) ?? group[0]).sentAt;
    return [sinceText(sentAt, begin), sinceText(to, begin), String(group.length), outcome, cause, why];
  });
}

/** Groups with the same key, in the order of their first members. */
function grouped<T>(all: readonly T[], keyOf: (one: T) => readonly string[]): readonly (readonly [T, ...T[]])[] {
  const groups = new Map<string, [T, ...T[]]>();
  for (const one of all) {
    const key = JSON.stringify(keyOf(one));
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()];
}

/** The prediction of `rollout check`, and the measured loss where the requests went. */
function predictionText({ prediction, requests }: WatchReport): string {
  if (prediction === undefined) return 'There is no prediction for this rollout.\n';
  const table = textTable(
    ['CLIENTS', 'SERVICE', 'THROUGH', `PREDICTED AT ${prediction.rate}/s`, 'MEASURED'],
    prediction.paths.map((path) => [
      clientsText(path),
      path.service,
      throughText(path),
      intervalText(path),
      requests !== undefined && isSame(path, requests.path) ? measuredText(requests) : '-',
    ]),
  );
  const isElsewhere = requests !== undefined && requests.path === undefined;
  return isElsewhere ? `${table}The URL is no address, port or name of these Services.\n` : table;
}

function isSame(path: PathReport, other: PathReport | undefined): boolean {
  return path.service === other?.service && path.clients === other.clients;
}

function measuredText({ lost, isPredicted }: RequestsReport): string {
  if (isPredicted === undefined) return `${lost.length}, and the rollout did not end`;
  return `${lost.length}, ${isPredicted ? 'inside' : 'outside of'} the interval`;
}
