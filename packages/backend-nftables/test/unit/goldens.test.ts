import type { ForwardingTable } from '@switchyard/core';
import { here, situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { printTable } from '../../src/rules/print.ts';
import { skeleton } from '../../src/skeleton.ts';
import { Driven } from './support.ts';

// Regenerate with `vitest run -u`; in CI a difference, or a golden that is not there, fails.
const ports = [{ port: 80, nodePort: 30080 }];
const endpoints = [here('10.244.1.5'), there('10.244.2.5')];
const external = { ports, loadBalancerIps: ['198.51.100.7'], externalIps: ['198.51.100.8'], endpoints } as const;

const situations: Readonly<Record<string, ForwardingTable>> = {
  'cluster-ip': situation({ cart: { endpoints } }),
  'cluster-ip-masquerade-all': situation({ cart: { endpoints } }, { masqueradeAll: true }),
  'cluster-ip-no-pod-detector': situation({ cart: { endpoints } }, { podCidr: 'none' }),
  'cluster-ip-no-endpoints': situation({ cart: {} }),
  'internal-local': situation({ cart: { internal: 'Local', endpoints } }),
  'internal-local-none-here': situation({ cart: { internal: 'Local', endpoints: [there('10.244.2.5')] } }),
  'external-cluster': situation({ cart: external }),
  'external-local': situation({ cart: { ...external, external: 'Local' } }),
  'external-local-none-here': situation({ cart: { ...external, external: 'Local', endpoints: [there('10.244.2.5')] } }),
  'external-local-no-pod-detector': situation({ cart: { ...external, external: 'Local' } }, { podCidr: 'none' }),
  'terminating-fallback': situation({
    cart: {
      ...external,
      external: 'Local',
      endpoints: [{ ...here('10.244.1.5'), terminating: true }, there('10.244.2.5')],
    },
  }),
  'source-ranges': situation(
    { cart: { ...external, sourceRanges: ['10.0.0.0/8', '10.1.0.0/16', '192.0.2.0/24', '2001:db8::/32'] } },
    { nodeAddresses: ['192.0.2.1'] },
  ),
  'source-ranges-other-family': situation({ cart: { ...external, sourceRanges: ['2001:db8::/32'] } }),
  protocols: situation({
    dns: {
      ports: [
        { name: 'tcp', protocol: 'TCP', port: 53, nodePort: 30053 },
        { name: 'udp', protocol: 'UDP', port: 53, nodePort: 30053 },
        { name: 'sctp', protocol: 'SCTP', port: 53, nodePort: 30053 },
      ],
      endpoints,
    },
  }),
  settings: situation(
    {},
    {
      podCidr: '10.200.0.0/14',
      nodePortCidrs: ['192.0.2.0/24', '10.0.0.0/8', '10.1.0.0/16'],
      serviceCidrs: ['10.96.0.0/12'],
    },
  ),
  'external-local-pod-interface': situation(
    { cart: { ...external, external: 'Local' } },
    { podDetector: { kind: 'interfacePrefix', prefix: 'veth' } },
  ),
  'ipv6-external-local': situation(
    {
      cart: {
        clusterIps: ['fd00:10:96::a'],
        ports,
        external: 'Local',
        loadBalancerIps: ['2001:db8:7::1'],
        endpoints: [here('fd00:10:244:1::5'), there('fd00:10:244:2::5')],
      },
    },
    { ipFamily: 'IPv6', serviceCidrs: ['fd00:10:96::/112'] },
  ),
};

test.each(Object.entries(situations))('%s', async (name, table) => {
  const driven = await Driven.open(undefined, table.ipFamily);
  await driven.full(table);
  const dump = (await driven.dump()).replace(/^/gm, '# ').trimEnd();
  const text = `# What switchyard-agent --switchyard-dump says:\n#\n${dump}\n\n${driven.script}`;
  await expect(text).toMatchFileSnapshot(`../golden/${name}.nft`);
});

test('the rules; of the load-balancing classes only the first and the last', async () => {
  const text = printTable(skeleton('switchyard'))
    .replace(/ {2}chain lb[46]-(?!1 |65536 )\d+ \{\n(?: {4}.*\n)* {2}\}\n/g, '')
    .replace(/(lb[46]-classes \{ 0x100000 : goto lb[46]-1, ).*(, 0x\w+ : goto lb[46]-65536)/g, '$1...$2');
  await expect(text).toMatchFileSnapshot('../golden/skeleton.nft');
});
