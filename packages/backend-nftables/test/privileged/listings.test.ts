import { type IpFamily, ipFamilies, type PodDetector, parseCidr } from '@switchyard/core';
import { here, situation, type SituationOptions, type SituationSpec, there } from '@switchyard/core/testing';
import { createLab, type Lab, type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Kernel, signal } from './support.ts';

// What `nft list table` prints of our table, byte by byte: the rules once, and what the objects hold for every family and setting.
// Regenerate with `vitest run -u -c vitest.privileged.config.ts`, with the nft of Debian 12 (other versions print otherwise).

const table = 'switchyard';
const goldenVersion = 'v1.0.6';
let lab: Lab;
let node: LabNode;

beforeAll(async () => {
  lab = await createLab({ name: 'nftl', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  expect(await nft('--version'), 'the goldens are of another nft').toContain(goldenVersion);
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

interface Listing {
  /** The table as it is before anything is written into its objects. */
  readonly rules: string;
  /** The objects that have elements, each with its lines. */
  readonly objects: readonly string[];
}

const elementsLine = /\t\telements = \{[^}]*\}\n/g;

async function list(family: IpFamily, options: SituationOptions): Promise<Listing> {
  await nft('flush', 'ruleset');
  const kernel = await Kernel.open(node, family);
  expect(await kernel.full(situation(plans[family].services, { ...options, ipFamily: family }))).toMatchObject({
    status: 'applied',
  });
  const text = await nft('list', 'table', 'inet', table);
  const constant = /^\t(?:set birthmark|map lb[46]-classes) /;
  const digests = /^\tset rule-marks /;
  const blocks = text.match(/^\t(?:map|set) [^\n]*\{\n(?:\t\t[^\n]*\n)*\t\}\n/gm) ?? [];
  const objects = blocks.filter(
    (block) => block.includes('elements = ') && !constant.test(block) && !digests.test(block),
  );
  // Constant objects keep their elements, except the digests of the kernel's own text.
  const rules = blocks.reduce(
    (rest, block) => (constant.test(block) ? rest : rest.replace(block, block.replace(elementsLine, ''))),
    text,
  );
  return { rules, objects };
}

/** The objects that differ from those of another listing; of an object that is missing only the name. */
function differences({ objects }: Listing, other: Listing): string {
  const nameOf = (object: string): string => object.split(' ')[1] ?? '';
  const names = new Set(objects.map(nameOf));
  const missing = other.objects.map(nameOf).filter((name) => !names.has(name));
  const different = objects.filter((object) => !other.objects.includes(object));
  return [...missing.map((name) => `\t# no ${name}\n`), ...different].join('');
}

/** Of the load-balancing classes only the first and the last. */
function withoutClasses(listing: string): string {
  return listing.replaceAll(/\n\tchain lb[46]-(?!1 |65536 )\d+ \{\n(?:\t\t[^\n]*\n)*\t\}\n/g, '');
}

describe.each(ipFamilies)('%s', (family) => {
  test('nft lists for every setting what it listed before', async () => {
    const { rules } = await list(family, {});
    expect(rules).toContain('chain nat-postrouting {');
    await expect(withoutClasses(rules)).toMatchFileSnapshot('../golden/listed-rules.nft');
    const [[firstTitle, firstOptions], ...others] = [...settingsOf(family)] as [[string, SituationOptions]];
    const first = await list(family, firstOptions);
    expect(first.rules, firstTitle).toBe(rules);
    const listed = [`# ${firstTitle}\n${first.objects.join('')}`, '# The objects that differ from those above:\n'];
    for (const [title, options] of others as readonly [string, SituationOptions][]) {
      const listing = await list(family, options);
      expect(listing.rules, title).toBe(rules);
      listed.push(`# ${title}\n${differences(listing, first)}`);
    }
    await expect(listed.join('\n')).toMatchFileSnapshot(`../golden/listed-${family.toLowerCase()}.nft`);
  });
});
