import { type ObjectPatch, rangeText, settingsText } from '@switchyard/loss/workload';
import { textTable } from '../text-table.ts';
import type { PathReport, RolloutReport } from './rollout-report.ts';
import { yamlText } from './yaml-text.ts';

/** A report for people. Ends with a newline. */
export function reportText(report: RolloutReport): string {
  const { namespace, deployment, workload, proxy, proxyTiming, delayFrom, loadBalancers, paths, notes, rate } = report;
  const { shortest, longest } = proxyTiming.noticesTerminating;
  const head = [
    `Deployment ${namespace}/${deployment}: ${settingsText(workload)}`,
    `proxy: ${proxy.name} (${proxy.from}), applies a change after ${rangeText(shortest, longest)}${delayFrom === undefined ? '' : ` (${delayFrom})`}`,
    ...loadBalancers.map(({ service, profile, from }) => `load balancer of Service ${service}: ${profile} (${from})`),
  ];
  const table = textTable(
    ['CLIENTS', 'SERVICE', 'THROUGH', `LOST AT ${rate}/s`, 'EXPECTED'],
    paths.map((path) => [
      clientsText(path),
      path.service,
      throughText(path),
      intervalText(path),
      path.requests.expected === undefined ? '-' : String(path.requests.expected),
    ]),
  );
  const reasons = new Set(
    paths.flatMap((path) => path.reasons.map((reason) => `${path.service}, ${clientsText(path)}: ${reason}`)),
  );
  return [
    `${head.join('\n')}\n`,
    table,
    section('Because', [...reasons]),
    section('Assumed', notes),
    `${resultText(report)}\n`,
    ...suggestionTexts(report),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${title}:\n${lines.map((line) => `  - ${line}\n`).join('')}`;
}

/** The way of a path's requests. */
export function throughText({ by, policy, loadBalancer }: PathReport): string {
  if (by === 'clusterIp') return policy === 'Local' ? 'cluster IP, Local' : 'cluster IP';
  const name = by === 'nodePort' ? 'NodePort' : 'load balancer';
  return loadBalancer === undefined ? `${name}, ${policy}` : `${name} ${loadBalancer}, ${policy}`;
}

/** The place of a path's clients. */
export function clientsText({ clients }: PathReport): string {
  return clients === 'inside' ? 'in the cluster' : 'outside';
}

/** Lost requests of a path. */
export function intervalText({ requests: { least, most } }: PathReport): string {
  return least === most ? String(most) : `${least} to ${most}`;
}

function resultText({ isLossless, paths, suggestion }: RolloutReport): string {
  if (isLossless) return 'Nothing will be lost, even in the worst case.';
  const isStuck = paths.every(({ requests }) => requests.most === 0);
  const result = isStuck ? 'The rollout will not end.' : 'The next rollout may lose requests.';
  return suggestion === undefined
    ? `${result} No patch of hook, strategy, minReadySeconds or traffic policy was found that prevents it.`
    : `${result} With these changes it loses nothing, even in the worst case:`;
}

function suggestionTexts({ suggestion, namespace }: RolloutReport): readonly string[] {
  if (suggestion === undefined) return [];
  const { changes, patches } = suggestion;
  const table = textTable(
    ['OBJECT', 'FIELD', 'NOW', 'THEN'],
    changes.map(({ object, field, from, to }) => [object, field, from, to]),
  );
  const isRollout = patches.some(({ patch }) => isObject(patch['spec']) && 'template' in patch['spec']);
  const end =
    'The patch of the Deployment starts a rollout, in which the pods of now still end without the new settings.\n';
  return [table, ...patches.map((patch) => patchCommand(patch, namespace)), ...(isRollout ? [end] : [])];
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** A command with the patch as its standard input. */
function patchCommand({ kind, name, patch }: ObjectPatch, namespace: string): string {
  return `kubectl patch ${kind} ${name} -n ${namespace} --patch-file /dev/stdin <<'END'\n${yamlText(patch)}END\n`;
}
