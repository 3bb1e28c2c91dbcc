import { beforeEach, expect, test } from 'vitest';
import type { LoadBalancerService } from '../cluster/cluster-objects.ts';
import { lbService } from '../testing/builders.ts';
import { OwnWrites } from './own-writes.ts';

const at = (resourceVersion: string): LoadBalancerService => ({ ...lbService('default/web'), resourceVersion });
const seen = (resourceVersion: string): string => writes.newest(at(resourceVersion)).resourceVersion;
let writes: OwnWrites;

beforeEach(() => {
  writes = new OwnWrites();
  writes.remember(at('1'), at('2'));
});

test('until the watch shows what was written, that counts', () => {
  expect([seen('1'), seen('1')]).toEqual(['2', '2']);
});

test('several writes in a row count as the last one, whichever of them the watch shows', () => {
  writes.remember(at('2'), at('3'));
  expect([seen('1'), seen('2'), seen('3')]).toEqual(['3', '3', '3']);
});

test('a later write of another process counts, and the own one is forgotten', () => {
  expect([seen('5'), seen('1')]).toEqual(['5', '1']);
});

test('a write that changed nothing supersedes nothing', () => {
  writes.remember(at('2'), at('2'));
  expect(seen('2')).toBe('2');
});

test('a deleted Service leaves nothing behind', () => {
  writes.forget(at('1').record.key);
  expect(seen('1')).toBe('1');
});
