import type { ForwardingTable, ServicePortKey } from '@switchyard/core';
import { situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { KernelState } from './adopt.ts';
import { AppliedServices } from './applied-services.ts';
import { ClassPool } from './class-pool.ts';
import { renderService } from './render-service.ts';

const endpoints = [there('10.244.2.1'), there('10.244.2.2')];

function planned(applied: AppliedServices, table: ForwardingTable): Readonly<Record<string, readonly string[]>> {
  const broken = new Map<ServicePortKey, Error>();
  const groups = [...applied.planFull(table.services, broken)];
  return {
    written: groups.flatMap(({ owner }) => (owner.kind === 'services' ? owner.keys : [])),
    broken: [...broken].map(([key, error]) => `${key}: ${error.message}`),
  };
}

test('a Service for which no class is left keeps nobody else from being written', () => {
  const classes = new ClassPool('4');
  classes.reset(new Map([[0xfff, 'aff4-9-9']]));
  const applied = new AppliedServices({ suffix: '4', exactLimit: 1024, hasAffinity: true, classes });
  const table = situation({
    kept: { endpoints, affinitySeconds: 60 },
    plain: { endpoints, clusterIps: ['10.96.0.9'] },
  });
  expect(applied.adopt(new KernelState(), table.services)).toEqual([]);
  expect(planned(applied, table)).toEqual({
    written: ['shop/plain:/TCP'],
    broken: [expect.stringContaining('shop/kept:/TCP: cannot give chain aff4-2-60 a class')],
  });
});

test('what such a Service has stays as long as this process remembers it', () => {
  const classes = new ClassPool('4');
  const context = { suffix: '4', exactLimit: 1024, hasAffinity: true, classes } as const;
  const applied = new AppliedServices(context);
  const before = situation({ kept: { endpoints } });
  applied.adopt(new KernelState(), before.services);
  for (const group of applied.planFull(before.services, new Map())) group.settle(true);
  const kernel = new KernelState();
  for (const placed of applied.placed()) kernel.add(renderService(placed, context));
  classes.reset(new Map([[0xfff, 'aff4-9-9']]));
  const after = situation({ kept: { endpoints, affinitySeconds: 60 } });
  expect(applied.adopt(kernel, after.services)).toEqual([]);
});
