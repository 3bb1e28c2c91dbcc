import { apiResources } from '@switchyard/core/kubernetes';
import { conditionType } from '@switchyard/drain-gate';
import { expect, test } from 'vitest';
import { until } from '../../privileged/agent-log.ts';
import { openDrainSite } from './drain-site.ts';

// The gate with --readiness-gate, and a node whose agent hangs in the middle of a rollout.

const { signal } = new AbortController();
const replicas = 3;

test('a rollout stops while a node does not follow, and goes on when it does', async () => {
  await using site = await openDrainSite(
    { proxyMode: 'nftables', policy: 'Cluster', replicas, isAlone: false, isGated: true },
    signal,
  );
  const { cluster, agents, nodes } = site;
  const conditions = async () => {
    const { items } = await cluster.api.list(apiResources.pods, {}, signal);
    return items.map(({ status }) => status?.conditions?.find(({ type }) => type === conditionType));
  };
  await site.restart();
  expect((await conditions()).map((one) => one?.reason)).toEqual(Array.from({ length: replicas }, () => 'NodesFollow'));

  const [, , hanging] = agents;
  if (hanging === undefined) throw new Error('the site has three agents');
  process.kill(hanging.pid, 'SIGSTOP');
  const rollout = site.restart();
  const waiting = async () => (await conditions()).find((one) => one?.status === 'False');
  await until(async () => (await waiting()) !== undefined);
  expect(await waiting()).toMatchObject({
    reason: 'NodesBehind',
    message: expect.stringMatching(`^node ${nodes[2].name} (has not confirmed|does not answer)`),
  });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  // One new pod of maxSurge, and no old one has ended.
  expect((await conditions()).map((one) => one?.status).toSorted()).toEqual(['False', 'True', 'True', 'True']);

  process.kill(hanging.pid, 'SIGCONT');
  await rollout;
  expect((await conditions()).map((one) => one?.status)).toEqual(['True', 'True', 'True']);
  const { items } = await cluster.api.list(apiResources.events, {}, signal);
  const reasons = items.filter(({ involvedObject }) => involvedObject.kind === 'Pod').map(({ reason }) => reason);
  expect(reasons).toContain('NodesBehind');
  expect(reasons).toContain('NodesFollow');
});
