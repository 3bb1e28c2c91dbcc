import type { ForwardingTable } from '@switchyard/core';
import { ServiceTracker } from '@switchyard/core/engine';
import { situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { KernelState } from './adopt.ts';
import { ClassPool } from './service-elements.ts';
import { type ElementGroup, type HeldElements, placedServices, ServiceElements } from './service-elements.ts';
import { renderService } from '../render/render-service.ts';

const endpoints = [there('10.244.2.1'), there('10.244.2.2')];

const plan = (groups: readonly ElementGroup[]): readonly string[] =>
  groups.flatMap((group): readonly string[] => {
    const keys = group.owner.kind === 'services' ? group.owner.keys : [];
    try {
      return group.plan().length > 0 ? keys : [];
    } catch (error) {
      return [`${keys.join()}: ${String(error)}`];
    }
  });

const groupsOf = (elements: ServiceElements, { services }: ForwardingTable): readonly ElementGroup[] => [
  ...elements.groups([...services.values()].map((service) => ({ key: service.key, service }))),
];

test('a Service for which no class is left does not keep other Services from being written', () => {
  const classes = new ClassPool('4');
  classes.reset(new Map([[0xfff, 'aff4-9-9']]));
  const context = { suffix: '4', exactLimit: 1024, hasAffinity: true, classes } as const;
  const elements = new ServiceElements(context, new ServiceTracker<HeldElements>());
  const table = situation({
    kept: { endpoints, affinitySeconds: 60 },
    plain: { endpoints, clusterIps: ['10.96.0.9'] },
  });
  expect(elements.adopt(new KernelState(), table.services)).toEqual([]);
  expect(plan(groupsOf(elements, table))).toEqual([
    expect.stringContaining('shop/kept:/TCP: HostError: cannot give chain aff4-2-60 a class'),
    'shop/plain:/TCP',
  ]);
});

test('what such a Service has stays as long as this process remembers it', () => {
  const classes = new ClassPool('4');
  const context = { suffix: '4', exactLimit: 1024, hasAffinity: true, classes } as const;
  const tracker = new ServiceTracker<HeldElements>();
  const elements = new ServiceElements(context, tracker);
  const before = situation({ kept: { endpoints } });
  elements.adopt(new KernelState(), before.services);
  for (const group of groupsOf(elements, before)) {
    group.plan();
    group.settle(true);
  }
  const kernel = new KernelState();
  for (const placed of placedServices(tracker)) kernel.add(renderService(placed, context));
  classes.reset(new Map([[0xfff, 'aff4-9-9']]));
  const after = situation({ kept: { endpoints, affinitySeconds: 60 } });
  expect(elements.adopt(kernel, after.services)).toEqual([]);
});
