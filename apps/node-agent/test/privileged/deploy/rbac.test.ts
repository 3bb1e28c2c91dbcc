import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type AuditEntry,
  isGranted,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type PolicyRule,
  startCluster,
  waitForAgents,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type LogLine, readLog, until } from '../agent-log.ts';
import { guideText } from './guide.ts';
import { objectOf, renderOverlay } from './rendered.ts';

// The real agent, with the rights of the rendered ClusterRole and no others; every request is recorded.

const { signal } = new AbortController();
const user = 'system:serviceaccount:kube-system:switchyard';
const token = 'token-of-the-service-account';

/** Rights that ClusterRole system:node-proxier grants in Kubernetes 1.36, which kubeadm's kube-proxy runs with. */
const nodeProxier: readonly PolicyRule[] = [
  { verbs: ['list', 'watch'], apiGroups: [''], resources: ['services', 'endpoints'] },
  { verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['nodes'] },
  { verbs: ['create', 'patch', 'update'], apiGroups: ['', 'events.k8s.io'], resources: ['events'] },
  { verbs: ['list', 'watch'], apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'] },
  { verbs: ['list', 'watch'], apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'] },
];

let cluster: LabCluster;
let node: LabNode;
let rules: readonly PolicyRule[];
let kubeconfig: string;
const entries: AuditEntry[] = [];
const agents: LabProcess[] = [];

beforeAll(async () => {
  rules = objectOf(await renderOverlay('nftables'), 'ClusterRole').rules;
  cluster = await startCluster({ name: 'rbac', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  kubeconfig = `${cluster.lab.folder}/kubeconfig-agent`;
  const config = JSON.parse(cluster.server.kubeconfig(cluster.insideUrl));
  await writeFile(`${cluster.lab.folder}/token`, token);
  config.users[0].user = { tokenFile: `${cluster.lab.folder}/token` };
  await writeFile(kubeconfig, JSON.stringify(config));
  cluster.server.access.audit((entry) => {
    if (entry.user === user) entries.push(entry);
  });
  await cluster.api.create(apiResources.services, zeroapp({ port: 8080 }).service, signal);
});

afterAll(() => cluster?.[Symbol.asyncDispose]());

afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.stop();
});

function start(): LabProcess {
  const agent = cluster.startAgent(node, { args: [`--kubeconfig=${kubeconfig}`] });
  agents.push(agent);
  return agent;
}

/** Requests, each once, as `verb resource.group`; a document by its path. */
function asked(): readonly string[] {
  return [...new Set(entries.map(({ request }) => `${request.verb} ${placeOf(request)}`))].toSorted();
}

function placeOf(request: AuditEntry['request']): string {
  if (request.kind === 'other') return request.path;
  return request.group === '' ? request.resource : `${request.resource}.${request.group}`;
}

describe('an agent with the rights of the ClusterRole', () => {
  test('runs, also where the API server cannot stream lists, and is refused nothing', async () => {
    using _user = cluster.server.access.addUser({ name: user, token, rules });
    const first = start();
    await waitForAgents(cluster.lab, [first], signal);
    await first.stop();
    const streaming = { isWatch: true, target: /sendInitialEvents/ };
    using _old = cluster.server.faults.inject({ kind: 'status', status: 400, body: '{}' }, streaming);
    const second = start();
    await waitForAgents(cluster.lab, [second], signal);
    // Repeated removal of the rules causes an Event, and then a series.
    await until(async () => {
      await node.run('nft', ['flush', 'ruleset']);
      await sleep(500);
      return entries.some(({ request }) => request.verb === 'patch');
    });
    expect(entries.filter(({ isAllowed }) => !isAllowed).map(({ request }) => request)).toEqual([]);
  });

  test('uses every right', () => {
    const rights = rules.flatMap(({ verbs, apiGroups = [], resources = [] }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.map((verb) => `${verb} ${group === '' ? resource : `${resource}.${group}`}`),
        ),
      ),
    );
    expect(rights.filter((right) => !asked().includes(right))).toEqual([]);
  });

  test('requests only what kubeadm grants to kube-proxy, so an image swap needs no new right', () => {
    expect(entries.length).toBeGreaterThan(0);
    const missing = entries.filter(({ request }) => !nodeProxier.some((rule) => isGranted(rule, request)));
    expect(missing.map(({ request }) => request)).toEqual([]);
  });
});

test('an agent that may not read EndpointSlices writes nothing, and says what it may not', async () => {
  const fewer = rules.filter(({ resources }) => !resources?.includes('endpointslices'));
  expect(fewer).toHaveLength(rules.length - 1);
  using _user = cluster.server.access.addUser({ name: user, token, rules: fewer });
  await node.run('nft', ['flush', 'ruleset']);
  const agent = start();
  const refusal = `endpointslices.discovery.k8s.io is forbidden: User "${user}" cannot watch resource`;
  let line: LogLine | undefined;
  await until(async () => {
    line = (await readLog(agent)).find((one) => String(one['error']).includes(refusal));
    return line !== undefined;
  });
  const msg = 'lost the API server; forwarding stays as it is';
  expect(line).toMatchObject({ level: 'warn', resource: 'EndpointSlice', msg });
  expect(await guideText()).toContain(msg);
  expect((await node.run('nft', ['list', 'ruleset'])).stdout).toBe('');
});
