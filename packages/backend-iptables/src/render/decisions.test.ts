import {
  type Decision,
  type Frontend,
  parseCidr,
  type ServiceForwarding,
  sourceClasses,
  UsageError,
} from '@switchyard/core';
import { service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { RenderedService } from './chains.ts';
import { type RenderOptions, renderOptions } from './options.ts';
import { renderService } from './render-service.ts';

// The renderer turns all decisions into rules, including those that no current policy makes.

const endpoints = ['10.244.1.5', '10.244.2.5'].map((ip, index) => ({ ip, node: `n${index + 1}` }));
const table = tableOf(
  {
    services: [
      service('shop/cart', { loadBalancerIps: ['198.51.100.7'], external: 'Local', ports: [{ nodePort: 30080 }] }),
    ],
    slices: [slice('shop/cart', { endpoints })],
  },
  tableOptions(),
);
const [usual] = table.services.values() as Iterable<ServiceForwarding> as [ServiceForwarding];
const options = renderOptions(table, {
  masqueradeMark: 0x4000,
  dropInvalid: true,
  randomFully: true,
  nfacct: false,
  comments: false,
});
const variants: readonly RenderOptions[] = [
  options,
  { ...options, podDetector: { kind: 'interface', name: 'cni0' } },
  { ...options, podDetector: { kind: 'none' } },
];

const outcomes: readonly Decision[] = [
  { kind: 'forward', to: 'Cluster', masquerade: false },
  { kind: 'forward', to: 'Cluster', masquerade: true },
  { kind: 'forward', to: 'Local', masquerade: false },
  { kind: 'forward', to: 'Local', masquerade: true },
  { kind: 'reject' },
  { kind: 'drop' },
];
const triples = outcomes.flatMap((pod) =>
  outcomes.flatMap((node) => outcomes.map((outside): Frontend['decisions'] => ({ pod, node, outside }))),
);

const deciding = (decisions: Frontend['decisions'], isInternal: boolean): ServiceForwarding => ({
  ...usual,
  frontends: usual.frontends
    .filter(({ kind }) => (kind === 'clusterIP') === isInternal)
    .map((frontend) => ({ ...frontend, decisions })),
});

type Sender = keyof Frontend['decisions'];

/** Decision of the rules for a sender's packet to the first frontend. */
function outcomeOf({ chains, entries }: RenderedService, sender: Sender, first: Frontend): Decision {
  let masquerade = false;
  const walk = (name: string): string | undefined => {
    for (const rule of chains.find((chain) => chain.name === name)?.rules ?? []) {
      const target = /-j (\S+)/.exec(rule)?.[1];
      if (!isFor(rule, sender) || target === undefined) continue;
      if (target === 'RETURN') return undefined;
      if (target === 'KUBE-MARK-MASQ') masquerade = true;
      else if (/KUBE-S(VC|VL|EP)/.test(target)) return /SV[CL]/.test(target) ? (walk(target) ?? target) : name;
    }
    return undefined;
  };
  const own = entries.filter(({ rule }) => rule.includes(first.address));
  const lead = own.find((entry) => entry.table === 'nat');
  const reached = lead === undefined ? undefined : walk(/-j (\S+)/.exec(lead.rule)?.[1] ?? '');
  if (reached !== undefined) return { kind: 'forward', to: reached.includes('SVC') ? 'Cluster' : 'Local', masquerade };
  const refusal = own.find((entry) => entry.table === 'filter')?.rule ?? 'no rule refuses it';
  return { kind: refusal.includes('REJECT') ? 'reject' : refusal.endsWith('DROP') ? 'drop' : expect.fail(refusal) };
}

function isFor(rule: string, sender: Sender): boolean {
  const pod = /(! )?(?:-s 10\.244\.0\.0\/16|-i cni0)/.exec(rule);
  const local = /(! )?--src-type LOCAL/.exec(rule);
  const isRight = (match: RegExpExecArray | null, holds: boolean): boolean =>
    match === null || holds === (match[1] === undefined);
  return isRight(pod, sender === 'pod') && isRight(local, sender === 'node');
}

describe.each(variants)('pods told by $podDetector.kind', (given) => {
  const senders = sourceClasses.filter((sender) => sender !== 'pod' || given.podDetector.kind !== 'none');

  test.each([
    { name: 'external frontends', isInternal: false },
    { name: 'the cluster IP', isInternal: true },
  ])('$name do what was decided for each sender, or the Service is refused by name', ({ isInternal }) => {
    let refused = 0;
    for (const decisions of triples) {
      const wanted = deciding(decisions, isInternal);
      const kinds = new Set(senders.map((sender) => decisions[sender].kind));
      const targets = new Set(senders.map((sender) => targetOf(decisions[sender])));
      const canBe = isInternal ? targets.size === 1 : !(kinds.has('reject') && kinds.has('drop'));
      if (!canBe) {
        refused += 1;
        expect(() => renderService(wanted, given)).toThrow(UsageError);
        expect(() => renderService(wanted, given)).toThrow(/shop\/cart:/);
        continue;
      }
      const rendered = renderService(wanted, given);
      for (const sender of senders) {
        expect(outcomeOf(rendered, sender, wanted.frontends[0]!), `${sender} of ${JSON.stringify(decisions)}`).toEqual(
          decisions[sender],
        );
      }
    }
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(triples.length);
  });
});

test.each([
  [
    'decisions',
    (frontend: Frontend): Frontend => ({ ...frontend, decisions: { ...frontend.decisions, node: { kind: 'drop' } } }),
  ],
  ['source ranges', (frontend: Frontend): Frontend => ({ ...frontend, allowedSources: [parseCidr('10.0.0.0/8')] })],
])('frontends of one kind with different %s are refused by name', (_, change) => {
  const [clusterIp, vip, ...rest] = usual.frontends as [Frontend, Frontend, Frontend];
  const second = { ...change(vip), address: vip.address };
  const odd = { ...usual, frontends: [clusterIp, vip, second, ...rest] };
  expect(() => renderService(odd, options)).toThrow(/rendering shop\/cart:.*other Services are not affected/);
});

function targetOf(decision: Decision): string {
  return decision.kind === 'forward' ? decision.to : decision.kind;
}
