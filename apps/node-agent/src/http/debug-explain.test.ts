import { type Failure } from '@switchyard/core/engine';
import { millis, type ServicePortKey } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { ask, debugHandler, debugState, now, tableOfFamily } from './testing/debug-bench.ts';

async function explain(query: string, options: Parameters<typeof debugState>[0] = {}, accept?: string) {
  const headers = accept === undefined ? {} : { accept };
  return ask(debugHandler(debugState(options)), `/debug/explain${query}`, { headers });
}

async function explainJson(query: string, options: Parameters<typeof debugState>[0] = {}) {
  return JSON.parse((await explain(`${query}&format=json`, options)).body) as {
    readonly reasons: readonly { readonly code: string }[];
  };
}

const failure: Failure = { text: 'the kernel says no', since: millis(now - 60_000) };

describe('/debug/explain, for people', () => {
  test('says who sends, what happens, and why', async () => {
    const answer = await explain('?from=10.244.9.9&to=10.96.0.10:80/TCP');
    expect(answer.headers['Content-Type']).toBe('text/plain; charset=utf-8');
    expect(answer.body).toBe(`10.244.9.9 (pod: inside the pod range 10.244.0.0/16) -> 10.96.0.10:80/TCP

forward to one of 2 endpoints, source address kept
  10.244.1.5:8080  this node
  10.244.2.5:8080  node n2

service    shop/cart:http/TCP
frontend   clusterIP 10.96.0.10:80
table      IPv4 generation 1, applied 2026-11-21T10:00:00.000Z

why
  frontend               10.96.0.10:80/TCP is the clusterIP of shop/cart:http/TCP
  internalTrafficPolicy  cluster IPs follow internalTrafficPolicy Cluster
  endpointNotReady       10.244.2.6:8080 is not ready
  sourceKept             the endpoint sees 10.244.9.9
  sessionAffinity        the same client keeps its endpoint for 600 s
`);
  });

  test.each([
    ['nftables', 'drop: the sender gets no answer'],
    ['iptables', 'pass: not addressed to a Service'],
  ] as const)('an unallocated cluster IP, in %s mode', async (mode, expected) => {
    expect((await explain('?from=10.244.9.9&to=10.96.7.7:80', { mode })).body).toContain(expected);
  });

  test.each([
    [
      'a pod of this node',
      '?from=10.244.9.9&to=10.96.0.11:80',
      /source address kept[^]*sentBySocket +the socket itself/,
    ],
    [
      'a pod of another node',
      '?from=10.244.9.9&to=10.96.0.11:80&sent=elsewhere',
      /^ {2}sourceKept +the endpoint sees 10.244.9.9$/m,
    ],
    ['no endpoints', '?from=10.244.9.9&to=10.96.0.12:80', /^reject: the call fails at once, ECONNREFUSED$/m],
    [
      'no endpoints, from elsewhere',
      '?from=10.244.9.9&to=10.96.0.12:80&sent=elsewhere',
      /gets an ICMP error at once$/m,
    ],
    ['a wrong port of a cluster IP', '?from=10.244.9.9&to=10.96.0.10:81', /^reject: the call fails at once/m],
    ['an unallocated cluster IP', '?from=10.244.9.9&to=10.96.7.7:80', /^drop: the call fails at once, EPERM$/m],
    ['the same over SCTP', '?from=10.244.9.9&to=10.96.7.7:80/SCTP', /^drop: the sender gets no answer$/m],
  ])('in the ebpf mode: %s', async (_, query, expected) => {
    expect((await explain(query, { mode: 'ebpf' })).body).toMatch(expected);
  });

  test.each([
    ['rules carry a pod', 'from=10.244.9.9', '10.96.0.11:80', /^ {2}sourceKept +the endpoint sees 10.244.9.9$/m],
    ['also where it is said to be sent here', 'from=10.244.9.9&sent=here', '10.96.0.11:80', /^ {2}sourceKept /m],
    ['a pod that no Service serves gets an ICMP error', 'from=10.244.9.9', '10.96.0.12:80', /ICMP error at once$/m],
    ['a pod gets no answer from an unallocated cluster IP', 'from=10.244.9.9', '10.96.7.7:80', /gets no answer$/m],
    ['sockets of the node are served', 'from=10.244.9.9&source=node', '10.96.0.11:80', /^ {2}sentBySocket /m],
  ])("in the ebpf mode for the host's sockets alone, %s", async (_, who, to, expected) => {
    expect((await explain(`?${who}&to=${to}`, { mode: 'ebpf', socketLb: 'host' })).body).toMatch(expected);
  });

  test.each([
    [
      'a VIP of policy Local, from outside',
      '?from=203.0.113.9&to=198.51.100.7:80',
      'forward to the only endpoint, source',
    ],
    ['no endpoints', '?from=10.244.9.9&to=10.96.0.12:80', 'reject: the sender gets an ICMP error at once'],
    ['an unallocated cluster IP', '?from=10.244.9.9&to=10.96.7.7:80', 'drop: the sender gets no answer'],
    ['a wrong port of a cluster IP', '?from=10.244.9.9&to=10.96.0.10:81', 'unknownPortOfClusterIp'],
    ['something else', '?from=10.244.9.9&to=192.0.2.99:80', 'pass: not addressed to a Service'],
    ['a NodePort', '?from=203.0.113.9&to=192.0.2.1:30080', 'frontend   nodePort any NodePort address:30080'],
    [
      'a NodePort on an address that is not selected',
      '?from=203.0.113.9&to=10.244.1.1:30080',
      'nodePortAddressNotSelected',
    ],
    [
      'a NodePort of another node',
      '?from=203.0.113.9&to=192.0.2.2:30080',
      'any Service; 30080 is the NodePort of shop/cart:http/TCP, on addresses of this node\n',
    ],
    ['a NodePort on loopback', '?from=127.0.0.1&to=127.0.0.1:30080', 'nodePortOnLoopback'],
    ['a masqueraded source', '?from=203.0.113.9&to=10.96.0.11:80', "source address replaced by this node's"],
    [
      'IPv6 in brackets',
      '?from=[fd00::7]&to=[fd00:10:96::10]:80/TCP',
      'fd00::7 (outside: not an address of this node; pods of this IP family are not recognized',
    ],
    [
      'IPv6',
      '?from=fd00::7&to=[fd00:10:96::10]:80/TCP',
      'fd00::7 (outside: not an address of this node; pods of this IP family are not recognized',
    ],
    ['a protocol in lower case', '?from=10.244.9.9&to=10.96.0.10:80/tcp', 'service    shop/cart:http/TCP'],
    ['another protocol', '?from=10.244.9.9&to=10.96.0.10:80/UDP', 'unknownPortOfClusterIp'],
  ])('%s', async (...row) => {
    const [, query, expected] = row;
    const { status, body } = await explain(query);
    expect(status).toBe(200);
    expect(body).toContain(expected);
  });

  test.each([
    ['a wrong port of a cluster IP', '?from=10.244.9.9&to=10.96.0.10:81', 'reject: ', 'unknownPortOfClusterIp'],
    ['an unallocated cluster IP', '?from=10.244.9.9&to=10.96.7.7:80', 'drop: ', 'unallocatedClusterIp'],
  ])('%s passes in the iptables mode', async (...row) => {
    const [, query, otherwise, reason] = row;
    expect((await explain(query)).body).toContain(otherwise);
    const { body } = await explain(query, { mode: 'iptables' });
    expect(body).toContain('pass: not addressed to a Service');
    expect(body).toContain(reason);
  });

  test('says aloud that the kernel may do otherwise, and what it waits for', async () => {
    const failed = new Map([['shop/cart:http/TCP' as ServicePortKey, failure]]);
    const options = { failed, family: { pendingFor: millis(1500), failure } };
    const { body } = await explain('?from=10.244.9.9&to=10.96.0.10:80', options);
    expect(body).toContain(
      'NOT AS SHOWN: the kernel has refused this Service port since 2026-11-21T09:59:00.000Z: the kernel says no\n',
    );
    expect(body).toContain('newer changes wait for 1500 ms, THE LAST APPLY FAILED\n');
  });
});

describe('who sends', () => {
  const byInterface = new Map([
    ['IPv4', tableOfFamily('IPv4', { podDetector: { kind: 'interfacePrefix', prefix: 'veth' } })],
  ] as const);

  test.each([
    ['10.244.9.9', '', 'pod', 'inside the pod range 10.244.0.0/16'],
    ['192.0.2.1', '', 'node', 'an address of this node'],
    ['127.0.0.1', '', 'node', 'an address of this node'],
    ['10.244.1.1', '', 'pod', 'inside the pod range 10.244.0.0/16'],
    ['203.0.113.9', '', 'outside', 'neither an address of this node nor inside the pod range 10.244.0.0/16'],
    ['10.244.9.9', '&source=outside', 'outside', 'as the question says'],
  ])('%s%s is %s', async (...row) => {
    const [from, more, expected, fromReason] = row;
    const answer = await explainJson(`?from=${from}&to=10.96.0.10:80${more}`);
    expect(answer).toMatchObject({ flow: { from: expected, fromReason } });
  });

  test.each([
    [
      '',
      'outside',
      'not an address of this node; pods are recognized by interface, so add source=pod if the sender is one',
    ],
    ['&source=pod', 'pod', 'as the question says'],
  ])('where pods are recognized by interface, an address%s is %s', async (more, expected, fromReason) => {
    const answer = await explainJson(`?from=10.244.9.9&to=10.96.0.10:80${more}`, { tables: byInterface });
    expect(answer).toMatchObject({ flow: { from: expected, fromReason } });
  });
});

describe('/debug/explain, for programs', () => {
  test('has everything the text has, with codes', async () => {
    const failed = new Map([['shop/cart:http/TCP' as ServicePortKey, failure]]);
    const answer = await explainJson('?from=203.0.113.9&to=198.51.100.7:80/TCP', { failed });
    expect(answer).toMatchObject({
      flow: { from: 'outside', source: '203.0.113.9', destination: '198.51.100.7', destinationIsLocal: false },
      verdict: { kind: 'forward', masquerade: false, endpoints: [{ address: '10.244.1.5', isLocal: true }] },
      service: 'shop/cart:http/TCP',
      frontend: { kind: 'loadBalancerIP', address: '198.51.100.7', port: 80 },
      serviceFailure: { text: 'the kernel says no', since: '2026-11-21T09:59:00.000Z' },
      table: { ipFamily: 'IPv4', generation: 1, lastApplied: '2026-11-21T10:00:00.000Z' },
    });
    expect(answer.reasons.map(({ code }) => code)).toEqual([
      'frontend',
      'externalTrafficPolicy',
      'endpointNotLocal',
      'endpointNotLocal',
      'sourceKept',
      'sessionAffinity',
    ]);
  });

  test.each([
    [undefined, '', 'text/plain; charset=utf-8'],
    ['*/*', '', 'text/plain; charset=utf-8'],
    ['application/json', '', 'application/json'],
    ['application/json;q=0.1, text/plain', '', 'text/plain; charset=utf-8'],
    ['text/html, application/json', '', 'application/json'],
    ['text/html', '', 'text/plain; charset=utf-8'],
    ['application/json', '&format=text', 'text/plain; charset=utf-8'],
    ['text/plain', '&format=json', 'application/json'],
  ])('Accept %s%s: %s', async (accept, format, type) => {
    const answer = await explain(`?from=10.244.9.9&to=10.96.0.10:80${format}`, {}, accept);
    expect(answer.headers['Content-Type']).toBe(type);
  });
});

describe('what /debug/explain refuses', () => {
  const to = 'to=10.96.0.10:80/TCP';

  test.each([
    ['', 'from is missing'],
    [`?${to}`, 'from is missing'],
    ['?from=10.0.0.1', 'to is missing'],
    [`?from=somewhere&${to}`, 'from "somewhere" is not an IP address'],
    [`?from=10.0.0.1/32&${to}`, 'from "10.0.0.1/32" is not an IP address'],
    ['?from=10.0.0.1&to=10.96.0.10', 'to "10.96.0.10" is not ADDRESS:PORT/PROTOCOL'],
    ['?from=10.0.0.1&to=10.96.0.10:0', 'to "10.96.0.10:0" is not ADDRESS:PORT/PROTOCOL'],
    ['?from=10.0.0.1&to=10.96.0.10:80/ICMP', 'to "10.96.0.10:80/ICMP" is not ADDRESS:PORT/PROTOCOL'],
    ['?from=fd00::1&to=fd00::2:80', 'to "fd00::2:80" is not ADDRESS:PORT/PROTOCOL'],
    [`?from=fd00::1&${to}`, 'fd00::1 and 10.96.0.10 are of different IP families'],
    [`?from=10.0.0.1&${to}&sent=there`, 'sent "there" is neither here nor elsewhere'],
    [`?from=10.0.0.1&${to}&source=me`, 'source "me" is not a source class'],
    [`?from=10.0.0.1&${to}&format=xml`, 'format "xml" is neither text nor json'],
    [`?from=10.0.0.1&${to}&verbose=1`, 'unknown parameter "verbose"'],
    [`?from=10.0.0.1&from=10.0.0.2&${to}`, 'from is given more than once'],
  ])('%s: %s', async (query, why) => {
    const { status, body } = await explain(query);
    expect(status).toBe(400);
    expect(body.startsWith(`${why}\n\nusage: /debug/explain?`)).toBe(true);
  });

  test.each([
    ['nothing was applied yet', debugState({ tables: new Map() })],
    ['this node does not have this family', { ...debugState({ tables: new Map() }), ipFamilies: [] }],
  ])('an answer while %s', async (why, state) => {
    const answer = await ask(debugHandler(state), `/debug/explain?from=10.0.0.1&${to}`);
    expect(answer).toMatchObject({ status: 503, body: `no IPv4 table: ${why}\n` });
  });
});

describe('/debug/dump', () => {
  test('is the text of each family', async () => {
    const answer = await ask(debugHandler(debugState()), '/debug/dump');
    expect(answer).toMatchObject({ status: 200, body: '# IPv4: x\nfrontend x\n\n# IPv6: x\n' });
  });

  test('is read from the kernel by one request at a time, and says what the kernel said', async () => {
    const held = Promise.withResolvers<string>();
    const handler = debugHandler(debugState({ dump: () => held.promise }));
    const first = ask(handler, '/debug/dump');
    expect((await ask(handler, '/debug/dump')).status).toBe(429);
    held.reject(new Error('cannot read'));
    expect(await first).toMatchObject({ status: 500, body: '500 cannot read\n' });
  });
});
