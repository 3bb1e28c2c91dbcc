import { parseIp } from '@switchyard/core';
import { expect, test } from 'vitest';
import { rolloutKinds } from '../cases/rollouts/run-rollout-case.ts';
import { rolloutObjects, type RolloutPlan } from './rollout-objects.ts';

const node = (name: string) => ({ name, addresses: { IPv4: parseIp('192.0.2.1') }, zone: undefined, kernel: '6' });

function planOf(workload: 'deployment' | 'daemonset'): RolloutPlan {
  const kind = rolloutKinds.find((one) => one.workload === workload && one.policy === 'Cluster');
  if (kind === undefined) throw new Error(`no ${workload} is rolled with the policy Cluster`);
  const settings = { run: 'r', namespace: 'n', image: 'i', command: undefined, tokenDigest: 'd' };
  return {
    kind,
    family: 'IPv6',
    name: 'app',
    gracePeriod: 90,
    nodes: { node1: node('a'), node2: node('b') },
    settings,
  };
}

test('a Deployment has one pod on one of the two nodes, apart from its successor, that serves until it is ended', () => {
  const { spec } = rolloutObjects(planOf('deployment')).deployment;
  expect([spec?.replicas, spec?.strategy?.rollingUpdate]).toEqual([1, { maxSurge: 0, maxUnavailable: 1 }]);
  const pod = spec?.template.spec;
  const terms = pod?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  expect(terms?.flatMap(({ matchFields = [] }) => matchFields.flatMap(({ values }) => values))).toEqual(['a', 'b']);
  expect(pod?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution).toHaveLength(1);
  expect([pod?.nodeName, pod?.restartPolicy, pod?.terminationGracePeriodSeconds]).toEqual([undefined, 'Always', 90]);
  const [container] = pod?.containers ?? [];
  expect(container?.args?.join(' ')).toMatch(
    /--pod \$\(POD_NAME\) --node \$\(NODE_NAME\).*--http 8080 --tcp 7000 --delay-shutdown 90$/,
  );
  expect(container?.env?.map(({ name }) => name)).toEqual(['POD_NAME', 'NODE_NAME']);
});

test('a DaemonSet surges on both nodes; the Service has one family and no load balancer', () => {
  const { daemonSet, service } = rolloutObjects(planOf('daemonset'));
  expect(daemonSet.spec?.updateStrategy?.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
  expect(daemonSet.spec?.template.spec?.affinity?.podAntiAffinity).toBeUndefined();
  expect(service.spec).toMatchObject({ type: 'NodePort', externalTrafficPolicy: 'Cluster', ipFamilies: ['IPv6'] });
});
