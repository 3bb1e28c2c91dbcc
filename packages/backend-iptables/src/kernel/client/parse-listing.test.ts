import { expect, test } from 'vitest';
import { parseListing } from './create-client.ts';

test.each([
  ['-A A -s 1.2.3.4/32 -p tcp -m tcp --dport 80 -c 5 600 -j B', '-s 1.2.3.4/32 -p tcp -m tcp --dport 80 -j B', 5, 600],
  [
    '-A A -m statistic --mode random --probability 0.50000000000 -c 1 60 -g B',
    '-m statistic --mode random --probability 0.50000000000 -g B',
    1,
    60,
  ],
  ['-A A -c 1 2 -j MARK --set-xmark 0x4000/0x4000', '-j MARK --set-xmark 0x4000/0x4000', 1, 2],
  ['-A A -c 3 4', '', 3, 4],
  ['-A A -c 3 4 ', '', 3, 4],
  ['-A A -s 1.2.3.4/32 -c 3 4', '-s 1.2.3.4/32', 3, 4],
  [
    String.raw`-A A -m comment --comment "x -c 1 2 -j y \" -c 3 4 -j z" -c 12345678901 6 -j B`,
    String.raw`-m comment --comment "x -c 1 2 -j y \" -c 3 4 -j z" -j B`,
    12_345_678_901,
    6,
  ],
])('%s', (line, rule, packets, bytes) => {
  expect(parseListing(`-N A\n-A AB -c 9 9 -j X\n${line}\n`, 'A')).toEqual([{ rule, packets, bytes }]);
});

test('a chain without rules, and one of the kernel, have none', () => {
  expect(parseListing('-N A\n', 'A')).toEqual([]);
  expect(parseListing('-P OUTPUT ACCEPT -c 0 0\n', 'OUTPUT')).toEqual([]);
});
