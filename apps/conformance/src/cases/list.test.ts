import { describe, expect, test } from 'vitest';
import type { ConformanceCase, SequenceCase } from '../model/case.ts';
import { type CaseList, listCases } from './list.ts';
import { scenarioCases } from './scenario-cases.ts';

const chosen = (id: string): readonly ConformanceCase[] =>
  scenarioCases({ dataplane: 'ebpf', cell: 'dual' }).filter((one) => one.id.startsWith(`scenario/${id}/`));

const sequence: SequenceCase = {
  kind: 'sequence',
  id: 'sequence/agent-down/ipv4',
  title: 'A dead agent leaves its rules',
  why: 'kube-proxy: rules stay when it ends',
  tags: ['sequence', 'slow'],
  families: 'IPv4',
  needs: ['restartProxy'],
  notFor: undefined,
  run: () => Promise.resolve(),
};

describe('as text', () => {
  test('a line for each case, and one that counts them', () => {
    expect(listCases(chosen('sctp'), { format: 'text', dataplane: 'ebpf' })).toBe(
      `scenario/sctp/ipv4  SCTP Services are forwarded like TCP
scenario/sctp/ipv6  SCTP Services are forwarded like TCP
2 cases
`,
    );
  });

  test('what is not for this dataplane says why, and is counted', () => {
    const text = listCases(chosen('unknown-port-sctp'), { format: 'text', dataplane: 'ebpf' });
    expect(text).toMatch(/^scenario\/unknown-port-sctp\/ipv4 .* \(skipped: not for ebpf: /);
    expect(text).toMatch(/\n2 cases, of which 2 not for ebpf\n$/);
  });

  test('no case at all is a count as well', () => {
    expect(listCases([], { format: 'text', dataplane: 'ebpf' })).toBe('0 cases\n');
  });
});

describe('as JSON', () => {
  const listed = (cases: readonly ConformanceCase[]): CaseList =>
    JSON.parse(listCases(cases, { format: 'json', dataplane: 'ebpf' })) as CaseList;

  test('a scenario with all that it looks at', () => {
    const { schema, dataplane, cases } = listed(chosen('restart'));
    expect([schema, dataplane, cases.length]).toEqual(['switchyard-conformance-cases/1', 'ebpf', 2]);
    expect(cases[0]).toMatchObject({
      id: 'scenario/restart/ipv4',
      families: 'IPv4',
      needs: expect.arrayContaining(['restartProxy']) as unknown,
    });
    expect(cases[0]?.checks.map(({ what }) => what)).toContain('restart of the agent');
    expect(cases[0]?.checks.every(({ id }) => /^line \d+$/.test(id))).toBe(true);
  });

  test('a sequence, whose checks are only known when it runs', () => {
    expect(listed([sequence]).cases).toEqual([
      {
        id: 'sequence/agent-down/ipv4',
        title: 'A dead agent leaves its rules',
        why: 'kube-proxy: rules stay when it ends',
        tags: ['sequence', 'slow'],
        families: 'IPv4',
        needs: ['restartProxy'],
        checks: [],
      },
    ]);
  });
});
