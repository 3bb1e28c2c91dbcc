import { parseCidr } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { withoutCovered } from './without-covered.ts';

const bare = (...texts: readonly string[]): readonly string[] => withoutCovered(texts.map(parseCidr));

describe('withoutCovered', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ['nothing is nothing', [], []],
    ['the same twice is once', ['10.0.0.0/8', '10.0.0.0/8'], ['10.0.0.0/8']],
    ['what is apart stays, sorted as text', ['9.0.0.0/8', '10.0.0.0/8'], ['10.0.0.0/8', '9.0.0.0/8']],
    ['neighbours stay', ['10.0.0.0/25', '10.0.0.128/25'], ['10.0.0.0/25', '10.0.0.128/25']],
    [
      'one within another goes',
      ['10.1.0.0/16', '10.0.0.0/8', '10.1.2.0/24', '11.0.0.0/8'],
      ['10.0.0.0/8', '11.0.0.0/8'],
    ],
    ['also one that begins alike', ['10.0.0.0/16', '10.0.0.0/8'], ['10.0.0.0/8']],
    ['everything covers all', ['10.0.0.0/8', '0.0.0.0/0', '255.255.255.255/32'], ['0.0.0.0/0']],
    ['of IPv6 too', ['fd00:1::/32', 'fd00::/16', '2001:db8::/32'], ['2001:db8::/32', 'fd00::/16']],
  ])('%s', (_, cidrs, kept) => {
    expect(bare(...cidrs)).toEqual(kept);
  });

  test('thousands of ranges, as a Service may have, hold nothing up', () => {
    const many = Array.from({ length: 8000 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`);
    expect(bare(...many)).toHaveLength(8000);
  }, 2000);
});
