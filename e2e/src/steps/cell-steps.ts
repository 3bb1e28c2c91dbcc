import { InvariantError } from '@switchyard/core';
import type { Step } from '../run/run-steps.ts';
import type { ChosenTests } from '../skips/choose-tests.ts';
import type { CellContext } from './cell-context.ts';
import { runConformance } from './conformance.ts';
import { createCluster } from './create-cluster.ts';
import type { Findings } from './findings.ts';
import { buildImages, loadImages } from './images.ts';
import { awaitNodes, installAgent } from './install-agent.ts';
import { startLoadBalancer } from './load-balancer.ts';
import { removeLeftovers } from './tear-down.ts';
import { chooseUpstream, runUpstream } from './upstream.ts';

/** All steps of a cell. What is quick and may fail comes before what is slow. */
export function cellSteps(context: CellContext, findings: Findings): readonly Step[] {
  const { hasUpstream, cell, isBuilt } = context;
  let chosen: ChosenTests | undefined;
  const tests = (): ChosenTests => {
    if (chosen === undefined) throw new InvariantError('tests of upstream run before they are chosen');
    return chosen;
  };
  return [
    removeLeftovers(context),
    ...(hasUpstream ? [chooseUpstream(context, (found) => (chosen = found))] : []),
    ...(isBuilt ? [] : [buildImages(context)]),
    createCluster(context),
    loadImages(context),
    installAgent(context),
    awaitNodes(context),
    ...(cell.loadBalancer === 'switchyard' ? [startLoadBalancer(context)] : []),
    runConformance(context, findings),
    ...(hasUpstream ? [runUpstream(context, findings, tests)] : []),
  ];
}
