import { expect, test } from 'vitest';
import { OwnChanges, ownChanges } from './own-changes.ts';

test('a socket is registered until the last registration is disposed', () => {
  const own = new OwnChanges();
  const one = own.register(7);
  const two = own.register(7);
  one[Symbol.dispose]();
  expect(own.has(7)).toBe(true);
  two[Symbol.dispose]();
  expect(own.has(7)).toBe(false);
  expect(own.version).toBe(4);
});

test('work goes one by one, also after a failure', async () => {
  const own = new OwnChanges();
  const order: string[] = [];
  const work = (name: string) => async () => {
    order.push(`${name} begins`);
    await Promise.resolve();
    order.push(`${name} ends`);
    if (name === 'a') throw new Error('a failed');
    return name;
  };
  const [a, b] = await Promise.allSettled([own.exclusively(work('a')), own.exclusively(work('b'))]);
  expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
  expect([a.status, b.status]).toEqual(['rejected', 'fulfilled']);
});

test('each namespace has its own', () => {
  expect(ownChanges('/run/netns/x')).toBe(ownChanges('/run/netns/x'));
  expect(ownChanges('/run/netns/x')).not.toBe(ownChanges(undefined));
});
