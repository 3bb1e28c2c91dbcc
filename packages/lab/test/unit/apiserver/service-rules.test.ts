import { parseCidr } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type Harness, services, startHarness, type Wire } from './harness.ts';

// How the API server fills in and guards Services.

const v4 = parseCidr('10.96.0.0/16');
const v6 = parseCidr('fd00:10:96::/112');

async function create(api: Harness, spec: object, name = 's'): Promise<Wire> {
  return api.send('POST', services, { metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } });
}

describe('addresses', () => {
  test.each([
    ['single stack by default', {}, ['IPv4'], 'SingleStack'],
    ['the second family on request', { ipFamilies: ['IPv6'] }, ['IPv6'], 'SingleStack'],
    ['both by policy', { ipFamilyPolicy: 'PreferDualStack' }, ['IPv4', 'IPv6'], 'PreferDualStack'],
    [
      'both, IPv6 first',
      { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6'] },
      ['IPv6', 'IPv4'],
      'RequireDualStack',
    ],
    ['the family of a given address', { clusterIP: 'fd00:10:96::5' }, ['IPv6'], 'SingleStack'],
    [
      'two given addresses',
      { ipFamilyPolicy: 'RequireDualStack', clusterIPs: ['10.96.0.5', 'fd00:10:96::5'] },
      ['IPv4', 'IPv6'],
      'RequireDualStack',
    ],
  ])('dual-stack cluster: %s', async (_what, given, families, policy) => {
    await using api = await startHarness({ serviceCidrs: [v4, v6] });
    const { spec } = (await create(api, given)).body;
    expect(spec.ipFamilies).toEqual(families);
    expect(spec.ipFamilyPolicy).toBe(policy);
    expect(spec.clusterIP).toBe(spec.clusterIPs[0]);
    const shapes = spec.clusterIPs.map((ip: string) => (ip.includes(':') ? 'IPv6' : 'IPv4'));
    expect(shapes).toEqual(families);
  });

  test('headless Services get no address, ExternalName neither address nor family', async () => {
    await using api = await startHarness();
    const headless = (await create(api, { clusterIP: 'None' }, 'h')).body.spec;
    expect(headless).toMatchObject({ clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv4'] });
    const alias = (await create(api, { type: 'ExternalName', externalName: 'x.example.com' }, 'e')).body.spec;
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'internalTrafficPolicy']) {
      expect(alias).not.toHaveProperty(field);
    }
  });

  test('an address is free again after its Service is deleted', async () => {
    await using api = await startHarness({ serviceCidrs: [parseCidr('10.96.0.0/30')] });
    await create(api, {}, 'a');
    await create(api, {}, 'b');
    const full = await create(api, { clusterIP: '10.96.0.1' }, 'c');
    expect(full.body.message).toContain('provided IP is already allocated');
    await api.send('DELETE', `${services}/a`);
    expect((await create(api, {}, 'c')).status).toBe(201);
  });

  test('when no address is left, the Service is refused', async () => {
    await using api = await startHarness({ serviceCidrs: [parseCidr('10.96.0.0/30')] });
    await create(api, {}, 'a');
    await create(api, {}, 'b');
    const refused = await create(api, {}, 'c');
    expect([refused.status, refused.body.message]).toEqual([500, expect.stringContaining('range is full')]);
  });

  test('a change of type keeps the address, ExternalName gives it up and gets a new one on the way back', async () => {
    await using api = await startHarness();
    const { clusterIP } = (await create(api, {})).body.spec;
    const node = await api.patch(`${services}/s`, 'merge', { spec: { type: 'NodePort' } });
    expect(node.body.spec.clusterIP).toBe(clusterIP);
    const alias = { spec: { type: 'ExternalName', externalName: 'x.example.com', clusterIP: null, clusterIPs: null } };
    expect((await api.patch(`${services}/s`, 'merge', alias)).body.spec).not.toHaveProperty('clusterIP');
    const back = await api.patch(`${services}/s`, 'merge', { spec: { type: 'ClusterIP', externalName: null } });
    expect(back.body.spec.clusterIP).toMatch(/^10\./);
  });
});

describe('ports', () => {
  test('every port of a NodePort Service gets a different node port', async () => {
    await using api = await startHarness();
    const ports = [
      { name: 'a', port: 1 },
      { name: 'b', port: 2 },
      { name: 'c', port: 2, protocol: 'UDP' },
    ];
    const { spec } = (await create(api, { type: 'NodePort', ports })).body;
    const given = spec.ports.map((port: Wire) => port.nodePort);
    expect(new Set(given).size).toBe(3);
    for (const port of given) expect(port).toBeGreaterThanOrEqual(30_000);
    expect(spec.externalTrafficPolicy).toBe('Cluster');
  });

  test('node ports stay with the name of the port, and go when the type no longer wants them', async () => {
    await using api = await startHarness();
    const before = (await create(api, { type: 'NodePort', ports: [{ name: 'a', port: 1 }] })).body.spec.ports[0];
    const ports = [
      { name: 'b', port: 2 },
      { name: 'a', port: 3 },
    ];
    const changed = (await api.patch(`${services}/s`, 'merge', { spec: { ports } })).body.spec.ports;
    expect(changed[1].nodePort).toBe(before.nodePort);
    const plain = (await api.patch(`${services}/s`, 'merge', { spec: { type: 'ClusterIP' } })).body.spec;
    expect(plain.ports.map((port: Wire) => port.nodePort)).toEqual([undefined, undefined]);
    expect(plain).not.toHaveProperty('externalTrafficPolicy');
  });

  test('a LoadBalancer may go without node ports', async () => {
    await using api = await startHarness();
    const { spec } = (await create(api, { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false })).body;
    expect(spec.ports[0]).not.toHaveProperty('nodePort');
  });

  test('healthCheckNodePort comes with Local, stays while it lasts, and goes with it', async () => {
    await using api = await startHarness();
    const local = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' };
    const { healthCheckNodePort } = (await create(api, local)).body.spec;
    expect(healthCheckNodePort).toBeGreaterThanOrEqual(30_000);
    const same = await api.patch(`${services}/s`, 'merge', { spec: { sessionAffinity: 'ClientIP' } });
    expect(same.body.spec.healthCheckNodePort).toBe(healthCheckNodePort);
    expect(same.body.spec.sessionAffinityConfig).toEqual({ clientIP: { timeoutSeconds: 10_800 } });
    const other = await api.patch(`${services}/s`, 'merge', { spec: { externalTrafficPolicy: 'Cluster' } });
    expect(other.body.spec).not.toHaveProperty('healthCheckNodePort');
  });
});

describe('refused with 422', () => {
  test.each([
    ['no ports', { ports: [] }, 'spec.ports', 'Required value'],
    ['two ports without names', { ports: [{ port: 1 }, { port: 2 }] }, 'spec.ports[0].name', 'Required value'],
    [
      'the same name twice',
      {
        ports: [
          { port: 1, name: 'a' },
          { port: 2, name: 'a' },
        ],
      },
      'spec.ports[1].name',
      'Duplicate value: "a"',
    ],
    [
      'a node port for ClusterIP',
      { ports: [{ port: 1, nodePort: 30_001 }] },
      'spec.ports[0].nodePort',
      "Forbidden: may not be used when `type` is 'ClusterIP'",
    ],
    [
      'a node port out of range',
      { type: 'NodePort', ports: [{ port: 1, nodePort: 80 }] },
      'spec.ports[0].nodePort',
      'Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
    ],
    [
      'a bad source range',
      { type: 'LoadBalancer', loadBalancerSourceRanges: ['x'] },
      'spec.loadBalancerSourceRanges[0]',
      'Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ],
    [
      'a bad external IP',
      { externalIPs: ['x'] },
      'spec.externalIPs[0]',
      'Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [
      'an absent family',
      { ipFamilies: ['IPv6'] },
      'spec.ipFamilies[0]',
      'Invalid value: "IPv6": not configured on this cluster',
    ],
    [
      'a bad policy',
      { type: 'NodePort', externalTrafficPolicy: 'Near' },
      'spec.externalTrafficPolicy',
      'Unsupported value: "Near": supported values: "Cluster", "Local"',
    ],
    ['ExternalName without a name', { type: 'ExternalName' }, 'spec.externalName', 'Required value'],
    [
      'a headless LoadBalancer',
      { type: 'LoadBalancer', clusterIP: 'None' },
      'spec.clusterIPs[0]',
      `Invalid value: "None": may not be set to 'None' for LoadBalancer services`,
    ],
  ])('%s', async (_what, spec, field, message) => {
    await using api = await startHarness();
    const { status, body } = await create(api, spec);
    expect(status).toBe(422);
    expect(body.details.causes.map((cause: Wire) => [cause.field, cause.message])).toContainEqual([field, message]);
  });

  test('the node port of another Service', async () => {
    await using api = await startHarness();
    const spec = { type: 'NodePort', ports: [{ port: 1, nodePort: 30_080 }] };
    await create(api, spec, 'a');
    expect((await create(api, spec, 'b')).body.message).toBe(
      'Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated',
    );
    expect((await create(api, { ...spec, ports: [{ port: 1, nodePort: 30_080, protocol: 'UDP' }] }, 'b')).status).toBe(
      201,
    );
  });

  test('a failed write leaves no trace in the pools', async () => {
    await using api = await startHarness();
    const bad = { type: 'NodePort', ports: [{ port: 0, nodePort: 30_080 }] };
    expect((await create(api, bad)).status).toBe(422);
    const dry = await api.send('POST', `${services}?dryRun=All`, {
      metadata: { name: 's' },
      spec: { type: 'NodePort', ports: [{ port: 1, nodePort: 30_080 }] },
    });
    expect(dry.status).toBe(201);
    expect(dry.body.metadata).not.toHaveProperty('resourceVersion');
    expect((await create(api, { type: 'NodePort', ports: [{ port: 1, nodePort: 30_080 }] })).status).toBe(201);
  });
});
