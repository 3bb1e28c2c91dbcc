import { ipFamilies, parseCidr, seconds } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { LoadBalancerSpec } from '../../spec/load-balancer-spec.ts';
import { exampleSpec, nodeTargets, portSpec } from '../../testing/example-specs.ts';
import { type RenderedTransparent, renderTransparent } from './render-transparent.ts';
import { transparentPorts } from './transparent-port.ts';

const bothFamilies = (number: number) => ipFamilies.flatMap((ipFamily) => nodeTargets(number, { ipFamily }));
const direct = (changes: Partial<LoadBalancerSpec>): LoadBalancerSpec =>
  exampleSpec('direct', { path: 'transparent', ...changes });

function render(spec: LoadBalancerSpec, up: readonly string[] = ['node1', 'node2']): RenderedTransparent {
  const health = { isUp: (_: unknown, { name }: { readonly name: string }) => up.includes(name) };
  return renderTransparent(transparentPorts({ specs: [spec], health }), 'eth0');
}

/** Rules of one chain. */
function chain({ body }: RenderedTransparent, name: string): readonly string[] {
  const text = body.split(`  chain ${name} {\n`)[1]?.split('  }\n')[0] ?? '';
  return text.split('\n').flatMap((line) => line.trim() || []);
}

const examples: Readonly<Record<string, { readonly spec: LoadBalancerSpec; readonly up?: readonly string[] }>> = {
  'all-protocols-both-families': {
    spec: direct({
      ports: (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => portSpec(80, bothFamilies(80), protocol)),
    }),
  },
  'affinity-and-source-ranges': {
    spec: direct({
      ports: [portSpec(80, bothFamilies(80))],
      sourceRanges: ['192.0.2.0/24', '198.51.100.7/32'].map(parseCidr),
      sessionAffinity: { kind: 'clientIP', timeout: seconds(10800) },
    }),
  },
  'nobody-up': {
    spec: direct({ ports: (['TCP', 'UDP'] as const).map((protocol) => portSpec(80, nodeTargets(80), protocol)) }),
    up: [],
  },
};

test.each(Object.entries(examples))('%s renders as its golden', async (name, { spec, up }) => {
  // Buckets in short: their numbers are tested by themselves.
  const text = render(spec, up).body.replaceAll(/(\{ 0 : [^,]+, 1 : [^,]+), .* (255 : \S+ \})/g, '$1, ..., $2');
  await expect(text).toMatchFileSnapshot(`../../../test/golden/transparent/${name}.nft`);
});

describe('who may go where', () => {
  const known = 'meta priority set @nh,96,32 . meta mark map @flows-172.18.255.1-80-';
  const port = (protocol: 'TCP' | 'UDP' | 'SCTP') =>
    direct({ ports: [portSpec(80, nodeTargets(80, { draining: 'node2' }), protocol)] });

  test('TCP: a connection stays with a node that is there, DOWN or not; a SYN looks for one that gets new connections', () => {
    const rules = chain(render(port('TCP'), ['node1']), 'in-172.18.255.1-80-tcp');
    expect(rules.filter((rule) => rule.includes(known))).toEqual([
      expect.stringMatching(/^tcp flags .* != syn .*meta priority \{ 47b9:7ea7, fc36:5c45 \} goto keep/),
      expect.stringMatching(/^tcp flags .* == syn .*meta priority \{ 47b9:7ea7 \} goto keep/),
    ]);
  });

  test('SCTP: an INIT is what a SYN is', () => {
    const rules = chain(render(port('SCTP'), ['node1']), 'in-172.18.255.1-80-sctp');
    expect(rules.filter((rule) => rule.includes(known))).toEqual([
      expect.stringMatching(/^sctp chunk init missing .*\{ 47b9:7ea7, fc36:5c45 \} goto keep/),
      expect.stringMatching(/^sctp chunk init exists .*\{ 47b9:7ea7 \} goto keep/),
    ]);
  });

  test.each([
    { up: ['node1', 'node2'], nodes: '47b9:7ea7, fc36:5c45', rule: 'stays with a draining node' },
    { up: ['node1'], nodes: '47b9:7ea7', rule: 'leaves a node that is DOWN' },
  ])('UDP: a flow $rule', ({ up, nodes }) => {
    const rules = chain(render(port('UDP'), up), 'in-172.18.255.1-80-udp');
    expect(rules.filter((rule) => rule.includes(known))).toEqual([
      expect.stringContaining(`meta priority { ${nodes} } goto`),
    ]);
  });
});

test('the same load balancer gives the same text and digest, another one another', () => {
  const spec = direct({});
  expect(render(spec)).toEqual(render(spec));
  expect(render(spec).digest).not.toBe(render(spec, ['node1']).digest);
});

test('of two load balancers for the same address and port the first has it', () => {
  const health = { isUp: () => true };
  const [first, second] = [direct({}), direct({ ports: [portSpec(80, nodeTargets(80).slice(1))] })];
  const ports = transparentPorts({ specs: [first, second], health });
  expect(ports).toEqual(transparentPorts({ specs: [first], health }));
});

test('what TCP and UDP share is there once', () => {
  const spec = direct({ ports: (['TCP', 'UDP'] as const).map((protocol) => portSpec(80, nodeTargets(80), protocol)) });
  expect(render(spec).maps.filter((name) => name.startsWith('buckets-'))).toHaveLength(1);
});
