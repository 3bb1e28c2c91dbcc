import { HostError, parseCidr } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cleanupFinalizer } from '../../src/controller/service-writer.ts';
import { ControllerBench, eventually } from './controller-bench.ts';

let bench: ControllerBench;
const pool = { kind: 'pool', cidrs: [parseCidr('172.18.255.0/24')] } as const;
const exclusionLabel = 'node.kubernetes.io/exclude-from-external-load-balancers';

beforeEach(async () => {
  bench = await ControllerBench.start(pool);
  await bench.createNode('node1', '172.18.0.11');
});
afterEach(() => bench[Symbol.asyncDispose]());

const announced = (ip: string): object => ({
  ingress: [{ ip, ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP' }] }],
});
const served = (name: string): Promise<void> => bench.served(name);
const served255 = async (): Promise<void> => {
  await served('web');
  expect((await bench.statusOf('web'))?.loadBalancer).toEqual(announced('172.18.255.1'));
};
const reasonsOf = (name: string): Promise<readonly string[]> => bench.eventReasonsOf(name);

describe('a LoadBalancer Service', () => {
  test('gets finalizer, load balancer, status with its health checks, and the events of a cloud', async () => {
    bench.controller();
    await bench.create('default/web');
    await served255();
    const service = await bench.find('web');
    expect(service?.metadata?.finalizers).toEqual([cleanupFinalizer]);
    const ready = (await bench.statusOf('web'))?.conditions?.[0];
    expect(ready?.message).toBe(
      'cloud-provider-kind: HTTP GET :10256/healthz every 5 s, out after 3 failures (10 to 15 s), in after 1; memory',
    );
    await eventually(async () =>
      expect(await bench.eventsOf('web')).toEqual([
        'Normal EnsuringLoadBalancer: Ensuring load balancer',
        'Normal EnsuredLoadBalancer: Ensured load balancer',
      ]),
    );
  });

  test('follows nodes, ports and annotations, and says so', async () => {
    bench.controller();
    await bench.create('default/web');
    await served255();
    await bench.createNode('node2', '172.18.0.12');
    await eventually(() => expect(bench.runtime.configuration.text).toContain('node2'));
    await eventually(async () =>
      expect((await bench.eventsOf('web')).at(-1)).toBe(
        'Normal UpdatedLoadBalancer: Updated load balancer with new hosts',
      ),
    );
    await bench.patch('web', { spec: { loadBalancerSourceRanges: ['192.0.2.0/24'] } });
    await eventually(async () =>
      expect((await bench.eventsOf('web')).at(-1)).toBe('Normal UpdatedLoadBalancer: Updated load balancer'),
    );
    await bench.patch('web', { metadata: { annotations: { 'lb.switchyard.dev/path': 'transparent' } } });
    await eventually(async () =>
      expect((await bench.statusOf('web'))?.loadBalancer?.ingress).toMatchObject([{ ipMode: 'VIP' }]),
    );
  });

  test('that is deleted goes when its load balancer is gone', async () => {
    bench.controller();
    await bench.create('default/web');
    await served255();
    await bench.delete('web');
    await bench.gone('web');
    await eventually(async () =>
      expect((await bench.eventsOf('web')).slice(-2)).toEqual([
        'Normal DeletingLoadBalancer: Deleting load balancer',
        'Normal DeletedLoadBalancer: Deleted load balancer',
      ]),
    );
  });

  test('that becomes a ClusterIP Service loses load balancer, status and finalizer', async () => {
    bench.controller();
    await bench.create('default/web');
    await served255();
    await bench.patch('web', { spec: { type: 'ClusterIP' } });
    await eventually(async () => {
      const service = await bench.find('web');
      expect(service?.metadata?.finalizers ?? []).toEqual([]);
      expect(service?.status).toEqual({ loadBalancer: {} });
    });
    expect(bench.runtime.changes).toEqual(['ensure default/web', 'remove default/web']);
    await eventually(async () => expect((await reasonsOf('web')).at(-1)).toBe('DeletedLoadBalancer'));
    await bench.create('default/later');
    await served('later');
    expect((await reasonsOf('web')).slice(2)).toEqual(['DeletingLoadBalancer', 'DeletedLoadBalancer']);
    expect(await bench.repeatedEventsOf('web')).toEqual([]);
  });

  test('of a foreign class is left alone, one of the own class is served', async () => {
    bench.controller();
    await bench.create('default/theirs', { spec: { loadBalancerClass: 'example.com/lb' } });
    await bench.create('default/web', { spec: { loadBalancerClass: 'switchyard.dev/lb' } });
    await served('web');
    expect(await bench.find('theirs')).not.toHaveProperty('metadata.finalizers');
    expect(bench.runtime.changes).toEqual(['ensure default/web']);
  });

  test('that becomes one of another class without a controller keeps nothing of this one', async () => {
    const first = bench.controller();
    await bench.create('default/web');
    await served255();
    await first.stop();
    await bench.patch('web', { spec: { type: 'ClusterIP' } });
    await bench.patch('web', { spec: { type: 'LoadBalancer', loadBalancerClass: 'example.com/lb' } });
    const theirs = { ip: '198.51.100.7', ipMode: 'VIP' };
    const ingress = [...((await bench.statusOf('web'))?.loadBalancer?.ingress ?? []), theirs];
    const status = { loadBalancer: { ingress } };
    const web = { name: 'web', subresource: 'status' } as const;
    await bench.api.patch(apiResources.services, web, { kind: 'merge', body: { status } }, AbortSignal.timeout(5000));
    bench.controller();
    await eventually(async () => {
      const service = await bench.find('web');
      expect(service?.metadata?.finalizers ?? []).toEqual([]);
      expect(service?.status).toEqual({ loadBalancer: { ingress: [theirs] } });
    });
    expect(bench.runtime.changes).toEqual(['ensure default/web', 'remove default/web']);
  });

  test('is not told anything again when the controller starts anew', async () => {
    await bench.createNode('kind-control-plane', '172.18.0.2', { [exclusionLabel]: '' });
    const first = bench.controller();
    await bench.create('default/web', { spec: { loadBalancerIP: '192.0.2.1' } });
    await served255();
    const reported = [
      'EnsuredLoadBalancer',
      'EnsuringLoadBalancer',
      'InvalidConfiguration',
      'LoadBalancerNodesExcluded',
    ];
    await eventually(async () => expect((await reasonsOf('web')).toSorted()).toEqual(reported));
    await first.stop();
    bench.controller();
    await bench.create('default/other');
    await served('other');
    await bench.patch('web', { metadata: { labels: { touched: 'yes' } } });
    await bench.create('default/third');
    await served('third');
    expect((await reasonsOf('web')).toSorted()).toEqual(reported);
    expect(await bench.repeatedEventsOf('web')).toEqual([]);
  });
});

test('a Service that another controller served before gets an address of this one, and the Events', async () => {
  await bench.create('default/web');
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } };
  const web = { name: 'web', subresource: 'status' } as const;
  await bench.api.patch(apiResources.services, web, { kind: 'merge', body: { status } }, AbortSignal.timeout(5000));
  bench.controller();
  await served255();
  await eventually(async () => expect(await reasonsOf('web')).toEqual(['EnsuringLoadBalancer', 'EnsuredLoadBalancer']));
});

describe('nodes', () => {
  test('that are left out are named, with the reason, and how to change that', async () => {
    await bench.createNode('kind-control-plane', '172.18.0.2', { [exclusionLabel]: '' });
    bench.controller();
    await bench.create('default/web');
    await served255();
    const text =
      'Normal LoadBalancerNodesExcluded: These nodes get no connections from the load balancer: kind-control-plane ' +
      `(label ${exclusionLabel}); kubeadm puts that label on control planes, and "kubectl label node kind-control-plane ` +
      `${exclusionLabel}-" takes it off`;
    await eventually(async () => expect(await bench.eventsOf('web')).toContain(text));
  });

  test('of which none is left are the answer to "why does it not work"', async () => {
    await bench.api.patch(
      { group: '', version: 'v1', plural: 'nodes', kind: 'Node', isNamespaced: false },
      { name: 'node1' },
      { kind: 'merge', body: { metadata: { labels: { [exclusionLabel]: '' } } } },
      new AbortController().signal,
    );
    bench.controller();
    await bench.create('default/web');
    await eventually(async () => expect(await bench.readyOf('web')).toBe('False NoNodes'));
    await eventually(async () => {
      const events = await bench.eventsOf('web');
      expect(events).toContain('Warning UnAvailableLoadBalancer: There are no available nodes for LoadBalancer');
      expect(events.find((text) => text.includes('LoadBalancerNodesExcluded'))).toMatch(
        /^Warning .*: Every node is left out, so the load balancer has nowhere to send connections; .* node1 \(label /,
      );
    });
  });
});

describe('wrong configuration', () => {
  test('is reported, leaves the previous load balancer running, and heals when it is corrected', async () => {
    bench.controller();
    await bench.create('default/web');
    await served255();
    const annotate = (value: string | null): Promise<unknown> =>
      bench.patch('web', { metadata: { annotations: { 'lb.switchyard.dev/health-check-fall': value } } });
    await annotate('often');
    await eventually(async () => expect(await bench.readyOf('web')).toBe('False InvalidConfiguration'));
    expect((await bench.statusOf('web'))?.loadBalancer).toEqual(announced('172.18.255.1'));
    expect(bench.runtime.changes).toEqual(['ensure default/web']);
    await eventually(async () =>
      expect((await bench.eventsOf('web')).at(-1)).toMatch(
        /^Warning InvalidConfiguration: annotation lb\.switchyard\.dev\/health-check-fall: "often" cannot be used: /,
      ),
    );
    await annotate(null);
    await served255();
  });

  test('of a new Service is reported, and nothing is made; others are unaffected', async () => {
    const { log } = bench.controller();
    await bench.create('default/bad', { annotations: { 'lb.switchyard.dev/path': 'sideways' } });
    await bench.create('default/web');
    await served('web');
    await eventually(async () => expect(await bench.readyOf('bad')).toBe('False InvalidConfiguration'));
    expect(bench.runtime.changes).toEqual(['ensure default/web']);
    expect(log.transitions.filter((line) => line.startsWith('error'))).toEqual([]);
  });
});

describe('a failure of the runtime', () => {
  test('of a runtime is reported and tried again, while other Services are served', async () => {
    bench.runtime.failureOf = ({ id }) => (id.service === 'default/web' ? 'no disk; make room' : undefined);
    bench.controller();
    await bench.create('default/web');
    await bench.create('default/other');
    await served('other');
    await eventually(async () => expect(await bench.readyOf('web')).toBe('False Refused'));
    expect((await bench.statusOf('web'))?.loadBalancer).toEqual({});
    await eventually(async () =>
      expect(await bench.eventsOf('web')).toContain(
        'Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: no disk; make room',
      ),
    );
    bench.runtime.failureOf = () => undefined;
    await served('web');
  });

  test('whose words change each time does not make it a hot loop', async () => {
    let attempts = 0;
    bench.runtime.failureOf = () => `attempt ${++attempts}`;
    bench.controller();
    await bench.create('default/web');
    await eventually(async () => expect(await bench.readyOf('web')).toBe('False Refused'));
    await eventually(() => expect(attempts).toBe(2)); // after a second
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(attempts).toBe(2);
  });

  test('that is unexpected leaves the state unknown: going back to the previous spec asks the runtime again', async () => {
    bench.controller();
    await bench.create('default/web');
    await served255();
    let isBroken = true;
    let asked = 0;
    bench.runtime.failureOf = ({ sourceRanges }) => {
      asked++;
      if (isBroken && sourceRanges.length > 0) throw new TypeError('a defect');
      return undefined;
    };
    await bench.patch('web', { spec: { loadBalancerSourceRanges: ['192.0.2.0/24'] } });
    await eventually(() => expect(asked).toBe(1));
    isBroken = false;
    await bench.patch('web', { spec: { loadBalancerSourceRanges: null } });
    await eventually(() => expect(asked).toBe(2));
  });

  test('of an engine that is away is reported on every Service, and ends by itself', async () => {
    let isAway = true;
    bench.runtime.before = (call) => {
      if (isAway) throw new HostError('docker.network', `${call}: network kind is missing; create a kind cluster`);
    };
    bench.controller();
    await bench.create('default/web');
    await eventually(async () => expect(await bench.readyOf('web')).toBe('False RuntimeFailed'));
    await eventually(async () =>
      expect((await bench.eventsOf('web')).at(-1)).toMatch(
        /^Warning SyncLoadBalancerFailed: .*network kind is missing/,
      ),
    );
    isAway = false;
    await served255();
  });

  test('of a runtime that cannot list load balancers is reported, and none is made until then', async () => {
    let isBlind = true;
    bench.runtime.before = (call) => {
      if (isBlind && call === 'list') throw new HostError('docker.ps', 'cannot list containers; restart the engine');
    };
    bench.controller();
    await bench.create('default/web');
    await eventually(async () => expect(await bench.readyOf('web')).toBe('False RuntimeFailed'));
    await eventually(async () => expect((await bench.eventsOf('web')).at(-1)).toMatch(/cannot list containers/));
    expect(bench.runtime.changes).toEqual([]);
    isBlind = false;
    await served255();
  });

  test('with conflicts is tried again from the newer Service, until the write gets through', async () => {
    bench.server.faults.inject({ kind: 'status', status: 409 }, { method: 'PATCH', target: /\/status$/, times: 7 });
    bench.controller();
    await bench.create('default/web');
    await served255();
  });

  test('at removal keeps the Service until it is over', async () => {
    bench.controller();
    await bench.create('default/web');
    await served255();
    let isStuck = true;
    bench.runtime.before = (call) => {
      if (isStuck && call === 'remove') throw new HostError('docker.rm', 'the container does not stop');
    };
    await bench.delete('web');
    await eventually(async () =>
      expect(await bench.eventsOf('web')).toContain(
        'Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to delete load balancer: the container does not stop',
      ),
    );
    expect((await bench.find('web'))?.metadata?.finalizers).toEqual([cleanupFinalizer]);
    isStuck = false;
    await bench.gone('web');
  });

  test('a load balancer that was removed by hand comes back when the runtime reports it', async () => {
    const { disturbances } = bench.controller();
    await bench.create('default/web');
    await served255();
    for (const which of [[{ cluster: 'kind', service: 'default/web' as never }], 'all'] as const) {
      bench.runtime.running.clear();
      disturbances.report(which);
      await eventually(() => expect(bench.runtime.running.size).toBe(1));
    }
  });
});

test('looking at everything again writes nothing where nothing has changed', async () => {
  const { disturbances, log } = bench.controller();
  await bench.create('default/web');
  await served255();
  await eventually(async () => expect(await reasonsOf('web')).toHaveLength(2));
  let asked = 0;
  bench.runtime.before = (call) => void (asked += call === 'ensure' ? 1 : 0);
  using _ = bench.server.faults.inject({ kind: 'status', status: 500 }, { method: 'PATCH', target: /./ });
  disturbances.report('all');
  await eventually(() => expect(asked).toBeGreaterThan(0));
  await bench.create('default/other');
  // The last one must write, so the fault occurs; it follows the first one.
  await eventually(() => expect(log.transitions.filter((line) => line.startsWith('warn'))).not.toEqual([]));
  const warnings = log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields['service']);
  expect(new Set(warnings)).toEqual(new Set(['default/other']));
});

test('what a runtime says of a load balancer that was removed on purpose brings nothing about', async () => {
  const { disturbances } = bench.controller();
  await bench.create('default/web');
  await served255();
  await bench.patch('web', { spec: { type: 'ClusterIP' } });
  await eventually(async () => expect((await reasonsOf('web')).at(-1)).toBe('DeletedLoadBalancer'));
  disturbances.report([{ cluster: 'kind', service: 'default/web' as never }]);
  await bench.create('default/later');
  await served('later');
  expect(await reasonsOf('web')).toHaveLength(4);
  expect(bench.runtime.changes).toEqual(['ensure default/web', 'remove default/web', 'ensure default/later']);
});

test('fifty Services at once are all served, each with an address of its own', async () => {
  bench.controller();
  const names = Array.from({ length: 50 }, (_, index) => `s${index}`);
  await Promise.all(names.map((name) => bench.create(`default/${name}`)));
  await eventually(() => expect(bench.runtime.running.size).toBe(50));
  const addresses = new Set([...bench.runtime.running.values()].flatMap((spec) => spec.addresses));
  expect(addresses.size).toBe(50);
  for (const name of names) await served(name);
});
