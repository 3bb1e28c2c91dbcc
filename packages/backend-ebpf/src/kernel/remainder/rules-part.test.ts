import { diffTables, type ForwardingTable, HostError } from '@switchyard/core';
import { withFailed } from '@switchyard/core/engine';
import { RecordingBackend, situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { RulesPart } from './rules-part.ts';

const { signal } = new AbortController();
const key = 'shop/cart:/TCP';
const withRules = situation({
  cart: { endpoints: [there('10.244.2.1')], loadBalancerIps: ['198.51.100.7'], sourceRanges: ['192.0.2.0/24'] },
});
const withoutRules = situation({});

test('a service whose removal was refused is removed with the next delta that names it', async () => {
  const rules = new RecordingBackend();
  const part = new RulesPart(rules);
  await part.applyFull({ table: withRules, scope: { kind: 'full' } }, 'remainder', signal);
  const [service] = [...rules.kernel.keys()];
  if (service === undefined) throw new HostError('test', 'the rules carry nothing');
  rules.refuse(service, new HostError('test.refused', 'no'));
  const refused = await change(withRules, withoutRules, new Map());
  expect(refused).toMatchObject({ status: 'partial', failed: new Map([[key, expect.anything()]]) });
  expect([...rules.kernel.keys()]).toEqual([key]);

  rules.refuse(service, undefined);
  expect(await change(withoutRules, withoutRules, new Map([[service, 'refused']]))).toMatchObject({
    status: 'applied',
  });
  expect([...rules.kernel.keys()]).toEqual([]);

  async function change(from: ForwardingTable, to: ForwardingTable, failed: Parameters<typeof withFailed>[2]) {
    const plan = part.plan(to, withFailed(diffTables(from, to), to, failed));
    await part.before(plan, signal);
    return part.after(plan, to, signal);
  }
});
