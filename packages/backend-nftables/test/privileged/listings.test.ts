import { type IpFamily, ipFamilies, type PodDetector, parseCidr } from '@switchyard/core';
import { here, situation, type SituationOptions, type SituationSpec, there } from '@switchyard/core/testing';
import { createLab, type Lab, type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Kernel, signal } from './support.ts';

// What `nft list table` prints of our table, byte by byte; and that its rules are the same for every family and setting.
// Regenerate with `vitest run -u -c vitest.privileged.config.ts`, with the nft of Debian 12 (other versions print otherwise).

const goldenVersion = 'v1.0.6';
let lab: Lab;
let node: LabNode;

beforeAll(async () => {
  lab = await createLab({ name: 'nftl', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  expect(await nft('--version'), 'the golden is of another nft').toContain(goldenVersion);
});

afterAll(() => lab[Symbol.asyncDispose]());

async function nft(...args: readonly string[]): Promise<string> {
  const result = await node.run('nft', args);
  expect(result.exitCode, result.stderr).toBe(0);
  return result.stdout;
}

interface Plan {
  readonly services: Readonly<Record<string, SituationSpec>>;
  readonly podCidr: string;
  readonly nodePortCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
}

const ports = [{ port: 80, nodePort: 30080 }];
const plans: Readonly<Record<IpFamily, Plan>> = {
  IPv4: {
    services: {
      cart: {
        clusterIps: ['10.96.0.10'],
        ports,
        external: 'Local',
        loadBalancerIps: ['198.51.100.7'],
        externalIps: ['198.51.100.8'],
        sourceRanges: ['192.0.2.0/24'],
        endpoints: [here('10.244.1.5'), there('10.244.2.5'), { ...here('10.244.1.6'), terminating: true }],
      },
      late: { clusterIps: ['10.96.0.11'], endpoints: [{ ...there('10.244.2.6'), terminating: true }] },
      none: { clusterIps: ['10.96.0.12'], endpoints: [] },
    },
    podCidr: '10.244.0.0/16',
    nodePortCidrs: ['192.0.2.0/24', '10.0.0.0/8', '10.1.0.0/16'],
    serviceCidrs: ['10.96.0.0/16'],
  },
  IPv6: {
    services: {
      cart: {
        clusterIps: ['fd00:10:96::10'],
        ports,
        external: 'Local',
        loadBalancerIps: ['2001:db8:7::1'],
        externalIps: ['2001:db8:7::2'],
        sourceRanges: ['2001:db8::/48'],
        endpoints: [
          here('fd00:10:244:1::5'),
          there('fd00:10:244:2::5'),
          { ...here('fd00:10:244:1::6'), terminating: true },
        ],
      },
      late: { clusterIps: ['fd00:10:96::11'], endpoints: [{ ...there('fd00:10:244:2::6'), terminating: true }] },
      none: { clusterIps: ['fd00:10:96::12'], endpoints: [] },
    },
    podCidr: 'fd00:10:244::/56',
    nodePortCidrs: ['2001:db8:1::/48', 'fd00:172:18::/64'],
    serviceCidrs: ['fd00:10:96::/112'],
  },
};

/** Every combination of the settings that meet in rules, then each of the others alone. */
function settingsOf(family: IpFamily): ReadonlyMap<string, SituationOptions> {
  const { podCidr, nodePortCidrs, serviceCidrs } = plans[family];
  const detectors: readonly PodDetector[] = [
    { kind: 'none' },
    { kind: 'cidr', cidr: parseCidr(podCidr) },
    { kind: 'interface', name: 'cni0' },
    { kind: 'interfacePrefix', prefix: 'veth' },
  ];
  const all = new Map<string, SituationOptions>();
  for (const masqueradeAll of [false, true]) {
    for (const podDetector of detectors) {
      for (const [name, cidrs] of [
        ['all', undefined],
        ['none', []],
        ['some', nodePortCidrs],
      ] as const) {
        const title = `masqueradeAll ${masqueradeAll}, localDetect ${podDetector.kind}, nodePortAddresses ${name}`;
        all.set(title, { masqueradeAll, podDetector, ...(cidrs === undefined ? {} : { nodePortCidrs: cidrs }) });
      }
    }
  }
  all.set('service CIDRs', { serviceCidrs });
  all.set('NodePorts on loopback', { localhostNodePorts: true });
  all.set('terminating fallback off', { terminatingFallback: 'off' });
  all.set('external IPs ignored', { externalIps: 'ignore' });
  return all;
}

const block = /^\t(?:map|set) [^\n]*\{\n(?:\t\t[^\n]*\n)*\t\}\n/gm;
const elements = /\t\telements = \{[^}]*\}\n/g;
/** Objects whose elements are part of the rules. */
const constant = /^\t(?:set birthmark|map lb[46]-classes) /;
/** It holds digests of the kernel's own text. */
const digests = /^\tset rule-marks /;

async function list(family: IpFamily, options: SituationOptions): Promise<string> {
  await nft('flush', 'ruleset');
  const kernel = await Kernel.open(node, family);
  const table = situation(plans[family].services, { ...options, ipFamily: family });
  expect(await kernel.full(table)).toMatchObject({ status: 'applied' });
  const text = await nft('list', 'table', 'inet', 'switchyard');
  return text.replaceAll(block, (object) => (digests.test(object) ? object.replace(elements, '') : object));
}

/** The table without what depends on Services and settings. */
function rulesOf(listing: string): string {
  return listing.replaceAll(block, (object) => (constant.test(object) ? object : object.replace(elements, '')));
}

/** Of the load-balancing classes only the first and the last. */
function withoutClasses(listing: string): string {
  return listing.replaceAll(/\n\tchain lb[46]-(?!1 |65536 )\d+ \{\n(?:\t\t[^\n]*\n)*\t\}\n/g, '');
}

test('nft lists what it listed before', async () => {
  const listing = withoutClasses(await list('IPv4', {}));
  expect(listing).toContain('chain nat-postrouting {');
  await expect(listing).toMatchFileSnapshot('../golden/listed.nft');
});

test.each(ipFamilies)('the rules are the same for every setting, %s', async (family) => {
  const rules = rulesOf(await list('IPv4', {}));
  expect(rules).toContain('chain nat-postrouting {');
  for (const [title, options] of settingsOf(family)) expect(rulesOf(await list(family, options)), title).toBe(rules);
});
