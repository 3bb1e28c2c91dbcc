import { describe, expect, test } from 'vitest';
import { columnOf, failsInBaseline, tableMarkdown } from './results.ts';

const failed = (name: string): { readonly name: string; readonly message: string } => ({ name, message: 'no' });
const baseline = columnOf('kube-proxy nftables', true, {
  passed: ['[sig-network] a', 'b'],
  failed: [failed('c')],
  skippedThemselves: [failed('d')],
  missing: [],
});
const ours = columnOf('switchyard nftables', false, {
  passed: ['[sig-network] a'],
  failed: [failed('b'), failed('c')],
  skippedThemselves: [failed('d')],
  missing: ['e'],
});

describe('the table of tests by proxy', () => {
  test('marks what the baseline fails too, and what only we fail', () => {
    const table = { columns: [baseline, ours] };
    expect([failsInBaseline(table, 'b'), failsInBaseline(table, 'c')]).toEqual([false, true]);
    expect(tableMarkdown(table)).toBe(String.raw`# Upstream tests by proxy

|  | kube-proxy nftables | switchyard nftables |
|---|---|---|
| passed | 2 | 1 |
| failed | 1 | 2 |
| skipped itself | 1 | 1 |
| missing | 0 | 1 |

## Not passed everywhere

| test | kube-proxy nftables | switchyard nftables |  |
|---|---|---|---|
| b | passed | failed | ours alone |
| c | failed | failed | fails with the baseline too |
| d | skipped itself | skipped itself |  |
| e | not run | missing |  |

## Passed everywhere

- \[sig-network\] a
`);
  });

  test('says that there was no baseline', () => {
    expect(tableMarkdown({ columns: [ours] })).toContain('| b | failed | no baseline |');
  });
});
