import { InvariantError } from '@switchyard/core';
import type { Findings, Step } from '../run/run-steps.ts';
import type { ChosenTests } from '../skips.ts';
import type { CellContext } from './cell-context.ts';
import { runConformance } from './conformance.ts';
import { baselineMode, createCluster, removeClusterStep, removeLeftovers } from './cluster.ts';
import { awaitNodes, buildImages, installAgent, loadImages } from './agent.ts';
import { startLoadBalancer } from './load-balancer.ts';
import { pageSteps } from './run-page.ts';
import { chooseUpstream, runUpstream } from './upstream.ts';

/** All steps of a cell. Quick steps that may fail come before slow ones. */
export function cellSteps(context: CellContext, findings: Findings): readonly Step[] {
  const { hasUpstream, hasBaseline, cell, isBuilt, purpose } = context;
  let chosen: ChosenTests | undefined;
  const tests = (): ChosenTests => {
    if (chosen === undefined) throw new InvariantError('tests of upstream run before they are chosen');
    return chosen;
  };
  if (purpose === 'pages')
    return [removeLeftovers(context), ...(isBuilt ? [] : [buildImages(context)]), ...pageSteps(context, findings)];
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
