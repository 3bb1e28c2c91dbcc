import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvariantError, seconds } from '@switchyard/core';
import type { Findings, Step } from '../run/run-steps.ts';
import type { ChosenTests } from '../skips.ts';
import { type CellContext, kubeconfigOf } from './cell-context.ts';
import { runConformance } from './conformance.ts';
import { baselineMode, createCluster, removeClusterStep, removeLeftovers } from './cluster.ts';
import { awaitNodes, buildImages, installAgent, loadImages } from './agent.ts';
import { apiVersion, controllerName, startLoadBalancer } from './load-balancer.ts';
import { chooseUpstream, runUpstream } from './upstream.ts';
import { nodeNames } from '../cell.ts';
import { nodeImageOf } from '../matrix.ts';
import { commandsOf, type PagePlan, pagePlans, type PlaceValues, type PlannedBlock, planPage } from '../pages.ts';
import { type CellCommand, mustRun } from '../run/shell.ts';

/** All steps of a cell. Quick steps that may fail come before slow ones. */
export function cellSteps(context: CellContext, findings: Findings): readonly Step[] {
  const { hasUpstream, hasBaseline, cell, isBuilt, purpose } = context;
  let chosen: ChosenTests | undefined;
  const tests = (): ChosenTests => {
    if (chosen === undefined) throw new InvariantError('tests of upstream run before they are chosen');
    return chosen;
  };
  if (purpose === 'pages') {
    const blocks: BlocksOfPages = new Map();
    return [
      readPages(context, blocks),
      removeLeftovers(context),
      ...(isBuilt ? [] : [buildImages(context)]),
      ...pageSteps(context, blocks, findings),
    ];
  }
  return [
    removeLeftovers(context),
    ...(hasUpstream ? [chooseUpstream(context, (found) => (chosen = found))] : []),
    ...(isBuilt ? [] : [buildImages(context)]),
    ...(hasBaseline ? baselineSteps(context, findings, tests) : []),
    createCluster(context),
    loadImages(context),
    installAgent(context),
    awaitNodes(context),
    ...(cell.loadBalancer === 'switchyard' ? [startLoadBalancer(context)] : []),
    ...(purpose === 'test' ? [runConformance(context, findings)] : []),
    ...(hasUpstream ? [runUpstream(context, findings, { tests, isBaseline: false })] : []),
  ];
}

/** Upstream's tests with kube-proxy, in a cluster of its own: nothing of its rules is left for our agent. */
function baselineSteps(context: CellContext, findings: Findings, tests: () => ChosenTests): readonly Step[] {
  return [
    createCluster(context, baselineMode(context)),
    awaitNodes(context),
    ...(context.cell.loadBalancer === 'switchyard' ? [startLoadBalancer(context)] : []),
    runUpstream(context, findings, { tests, isBaseline: true }),
    removeClusterStep(context, 'remove the cluster with kube-proxy'),
  ];
}

type BlocksOfPages = Map<PagePlan, readonly PlannedBlock[]>;

/** Finds a page that does not fit its plan before a cluster is made. */
function readPages({ checkout }: CellContext, blocks: BlocksOfPages): Step {
  return {
    name: 'read the pages',
    timeout: seconds(10),
    advice: 'give e2e/src/pages.ts an entry for each block',
    run: async () => {
      for (const plan of pagePlans) blocks.set(plan, planPage(plan, await readFile(join(checkout, plan.page), 'utf8')));
    },
  };
}

function pageSteps(context: CellContext, blocks: BlocksOfPages, findings: Findings): readonly Step[] {
  return pagePlans.flatMap((plan) => [
    ...(plan.cluster === 'page'
      ? []
      : [createCluster(context, plan.cluster), loadImages(context), awaitNodes(context)]),
    runPage(context, plan, { blocks, findings }),
    removeClusterStep(context, `remove the cluster of ${plan.page}`),
  ]);
}

/** Runs the blocks of a page in the order of its plan. A command that fails fails the step, with page and line. */
function runPage(
  context: CellContext,
  plan: PagePlan,
  { blocks, findings }: { readonly blocks: BlocksOfPages; readonly findings: Findings },
): Step {
  const { shell } = context;
  const timeout = seconds(3600);
  let at = '';
  return {
    name: `run the commands of ${plan.page}`,
    timeout,
    advice: 'correct the page, or its entry in e2e/src/pages.ts; commands.log has what was run',
    progress: () => at,
    run: async (signal) => {
      const planned = blocks.get(plan);
      if (planned === undefined) throw new InvariantError('the commands of a page run before it is read');
      if (plan.before !== undefined) {
        const command = machineCommand(context, plan.before);
        await mustRun(shell, command, `${plan.page}: the cluster is not as its reader has it`, signal);
      }
      const apiFlags = (await apiVersion(shell, signal)).map((word) => ` ${word}`).join('');
      let count = 0;
      for (const one of planned) {
        at = `${plan.page}:${one.block.line}`;
        if (one.plan.kind === 'leftOut') {
          findings.notes.push(`${at} was left out: ${one.plan.because}`);
          continue;
        }
        await mustRun(shell, blockCommand(context, one, apiFlags), `${at}: a command of the page fails`, signal);
        count += 1;
      }
      findings.notes.push(`${plan.page}: ${count} of ${planned.length} blocks ran`);
      return `${count} of ${planned.length} blocks`;
    },
  };
}

function blockCommand(context: CellContext, planned: PlannedBlock, apiFlags: string): CellCommand {
  const { plan } = planned;
  const text = commandsOf(planned, { ...valuesOf(context), apiFlags });
  if (plan.kind === 'run' && plan.on === 'worker') {
    const args = ['exec', workerOf(context), 'sh', '-euc', text];
    return { file: 'docker', args, timeout: seconds(120) };
  }
  return machineCommand(context, text, plan.kind === 'run' ? plan.editor : undefined);
}

/** kind and kubectl find the cluster by their variables, as a reader's do by their defaults. */
function machineCommand(context: CellContext, text: string, editor?: string): CellCommand {
  const { checkout, cluster, network } = context;
  const env = {
    KUBECONFIG: kubeconfigOf(context),
    KIND_CLUSTER_NAME: cluster,
    KIND_EXPERIMENTAL_DOCKER_NETWORK: network,
    ...(editor === undefined ? {} : { KUBE_EDITOR: editor }),
  };
  return { file: 'sh', args: ['-euc', `cd '${checkout}'\n${text}`], env, timeout: seconds(1800) };
}

function valuesOf(context: CellContext): Omit<PlaceValues, 'apiFlags'> {
  const { cluster, release, folder, isLocalBase } = context;
  return {
    cluster,
    image: nodeImageOf(release),
    folder,
    worker: workerOf(context),
    controller: controllerName(cluster),
    imageFlags: isLocalBase ? ' --local-base' : '',
  };
}

function workerOf({ cluster }: CellContext): string {
  return nodeNames(cluster)[1] ?? cluster;
}
