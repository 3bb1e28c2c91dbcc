import { describe, expect, test } from 'vitest';
import { parseYaml } from './parse-yaml.ts';
import { readManifest } from './read-manifest.ts';

const service = `apiVersion: v1
kind: Service
metadata: { name: cart }
spec:
  clusterIP: 10.96.0.10
  ports:
    - port: 80
`;

const names = (text: string): readonly string[] =>
  readManifest(text).objects.map(({ line, name, resource }) => `${resource} ${name} @${line}`);

describe('what is read', () => {
  test('several documents of all four kinds, each with its line', () => {
    const text = `# shop
---
${service}---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { namespace: shop, name: cart-x, labels: { kubernetes.io/service-name: cart } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.5], nodeName: n1 }]
---
---
apiVersion: v1
kind: Node
metadata: { name: n1 }
---
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: { name: kubernetes }
spec: { cidrs: [10.96.0.0/12] }
`;
    expect(readManifest(text).faults).toEqual([]);
    expect(names(text)).toEqual([
      'Service default/cart @3',
      'EndpointSlice shop/cart-x @11',
      'Node n1 @19',
      'ServiceCIDR kubernetes @23',
    ]);
  });

  test('JSON', () => {
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }, undefined, 2);
    expect(names(text)).toEqual(['Node n1 @1']);
  });

  test('a List, and a typed list whose items have no kind', () => {
    const node = (name: string, head: object = {}): object => ({ ...head, metadata: { name } });
    const typed = { apiVersion: 'v1', kind: 'NodeList', metadata: {}, items: [node('n2'), node('n3')] };
    const list = { apiVersion: 'v1', kind: 'List', items: [node('n1', { apiVersion: 'v1', kind: 'Node' }), typed] };
    expect(names(JSON.stringify(list))).toEqual(['Node n1 @1', 'Node n2 @1', 'Node n3 @1']);
    expect(readManifest('{"apiVersion":"v1","kind":"ServiceList","items":null}')).toMatchObject({
      objects: [],
      faults: [],
    });
  });

  test('defaults are those of the API server', () => {
    const [slice] = readManifest(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: x, labels: { kubernetes.io/service-name: cart } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: null
`).objects;
    expect(slice?.item).toMatchObject({
      service: 'default/cart',
      ports: [{ name: '', protocol: 'TCP', port: 8080 }],
      endpoints: [],
    });
  });

  test.each([
    ['empty', ''],
    ['comments', '# nothing\n---\n# here\n'],
    ['an explicit null', 'null\n'],
  ])('a file with %s says nothing', (_, text) => {
    expect(readManifest(text)).toMatchObject({ objects: [], faults: [], notes: [] });
  });

  test('kinds a proxy does not read are noted by kind', () => {
    const pod = 'apiVersion: v1\nkind: Pod\nmetadata: { name: p }\n';
    const { notes, faults } = readManifest(
      `${pod}---\n${pod}---\napiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\n`,
    );
    expect(faults).toEqual([]);
    expect(notes.map(({ line, topic }) => [line, topic])).toEqual([
      [1, 'Pod (v1)'],
      [5, 'Pod (v1)'],
      [9, 'EndpointSlice (discovery.k8s.io/v1beta1)'],
    ]);
  });

  test('a Service that would need an address from an API server is noted', () => {
    const { notes, objects } = readManifest(service.replace('  clusterIP: 10.96.0.10\n', ''));
    expect(objects).toHaveLength(1);
    expect(notes[0]?.message).toContain('Service default/cart has no clusterIP');
  });

  test('an FQDN slice is noted and left out', () => {
    const text =
      'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: x, labels: { kubernetes.io/service-name: a } }\naddressType: FQDN\n';
    expect(readManifest(text)).toMatchObject({
      objects: [],
      faults: [],
      notes: [{ message: expect.stringContaining('addressType') }],
    });
  });
});

describe('what is wrong', () => {
  const spec = (fields: string): string =>
    `apiVersion: v1\nkind: Service\nmetadata: { namespace: shop, name: cart }\nspec:\n${fields}`;
  const slice = (fields: string): string =>
    `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: x, labels: { kubernetes.io/service-name: a } }\n${fields}`;

  test.each([
    [
      'a port that is a text',
      spec('  ports:\n    - name: http\n      port: http\n'),
      7,
      7,
      'Service shop/cart: spec.ports[0].port must be a port (1-65535), not "http"',
    ],
    ['a missing port', spec('  ports:\n    - name: http\n'), 6, 7, 'spec.ports[0].port is required'],
    ['ports that are no list', spec('  ports: { port: 80 }\n'), 5, 3, 'spec.ports must be a list'],
    [
      'an unknown protocol',
      spec('  ports: [{ port: 80, protocol: tcp }]\n'),
      5,
      23,
      'spec.ports[0].protocol must be one of TCP, UDP, SCTP, not "tcp"',
    ],
    ['a broken cluster IP', spec('  clusterIP: 10.96.0.300\n'), 5, 3, 'spec.clusterIP must be an IP address or None'],
    [
      'a broken external IP',
      spec('  externalIPs:\n    - 192.0.2.1\n    - nowhere\n'),
      7,
      7,
      'spec.externalIPs[1] must be an IP address',
    ],
    [
      'a broken source range',
      spec('  loadBalancerSourceRanges: [10.0.0.0/33]\n'),
      5,
      30,
      'spec.loadBalancerSourceRanges[0] must be a CIDR',
    ],
    [
      'an unknown policy',
      spec('  externalTrafficPolicy: local\n'),
      5,
      3,
      'spec.externalTrafficPolicy must be one of Cluster, Local, not "local"',
    ],
    [
      'a timeout of zero',
      spec('  sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } }\n'),
      5,
      40,
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds must be',
    ],
    [
      'a missing spec',
      'apiVersion: v1\nkind: Service\nmetadata: { name: cart }\n',
      1,
      1,
      'Service default/cart: spec is required',
    ],
    ['a missing name', 'apiVersion: v1\nkind: Node\nmetadata: {}\n', 3, 1, 'Node (unnamed): metadata.name is required'],
    [
      'a label that is a number',
      'apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n    topology.kubernetes.io/zone: 1\n',
      6,
      5,
      "metadata.labels['topology.kubernetes.io/zone'] must be a text, not 1",
    ],
    [
      'a condition that is a text',
      slice('addressType: IPv4\nendpoints:\n  - addresses: [10.0.0.1]\n    conditions:\n      ready: "yes"\n'),
      8,
      7,
      'endpoints[0].conditions.ready must be true or false, not "yes"',
    ],
    [
      'an address of the other family',
      slice('addressType: IPv4\nendpoints:\n  - addresses: [10.0.0.1]\n  - addresses: [fd00::1]\n'),
      7,
      5,
      'endpoints[1] cannot be used',
    ],
    ['a port that is null', slice('addressType: IPv4\nports: [null]\n'), 5, 9, 'ports[0] must be an object, not null'],
    ['no kind', 'apiVersion: v1\n', 1, 1, 'kind is required'],
    ['no apiVersion', 'kind: Service\n', 1, 1, 'Service: apiVersion is required'],
    ['a list', '- a\n- b\n', 1, 1, 'expected a Kubernetes object'],
    [
      'a tab for indentation',
      'apiVersion: v1\nkind: Node\nmetadata:\n\tname: n1\n',
      4,
      1,
      'Tabs are not allowed as indentation',
    ],
    ['an unclosed bracket', 'apiVersion: v1\nkind: Node\nmetadata: { name: n1\n', 4, 1, ''],
    ['a key twice', 'apiVersion: v1\nkind: Node\nkind: Node\n', 3, 1, 'Map keys must be unique'],
    ['an unknown alias', 'apiVersion: v1\nkind: *missing\n', 2, 7, 'missing'],
    ['an object twice', `${service}---\n${service}`, 9, 1, 'Service default/cart is already defined in line 1'],
    [
      'an item of a list',
      'apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Node\n    metadata: { name: a/b }\n',
      6,
      17,
      'Node a/b: metadata.name must be a name without "/"',
    ],
  ])('%s is named with its place', (_, text, line, column, message) => {
    const [fault] = readManifest(text).faults;
    expect(fault).toEqual({ line, column, message: expect.stringContaining(message) });
  });

  test('an alias bomb is a fault, not a hang', () => {
    const levels = ['a: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 9; level++)
      levels.push(
        `b${level}: &a${level} [${Array(10)
          .fill(`*a${level - 1}`)
          .join(', ')}]`,
      );
    expect(readManifest(levels.join('\n')).faults).toHaveLength(1);
  });
});

test.each([
  [
    'block style',
    'a: 1\nb:\n  key: 1\n  key: 2\n',
    { a: 1, b: { key: 2 } },
    [{ line: 4, column: 3, message: 'key stands twice' }],
  ],
  ['JSON', '{"key":1,"key":2}', { key: 2 }, [{ line: 1, column: 10, message: '"key" stands twice' }]],
  [
    'a string with escapes',
    '{"a\\"b":1,"a\\"b":2}',
    { 'a"b': 2 },
    [{ line: 1, column: 11, message: '"a\\"b" stands twice' }],
  ],
])('duplicate keys can be kept, the last one counting: %s', (_, text, value, duplicates) => {
  expect(parseYaml(text, { duplicateKeys: 'keep' })).toMatchObject([{ value, errors: [], duplicates }]);
  expect(parseYaml(text)).toMatchObject([{ errors: [{ message: 'Map keys must be unique' }], duplicates: [] }]);
});
