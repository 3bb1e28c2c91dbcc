import { expect, test } from 'vitest';
import { aCase, aCheck, aFailedCheck, aReport, aRun, aSkip } from '../../testing/report-builders.ts';
import { pageData } from '../matrix.ts';
import { detailHtml } from './detail.ts';

const id = 'scenario/etp-local/ipv4';
const data = pageData(
  aReport(
    aRun({
      cases: [
        aCase({
          checks: [
            aCheck({ id: 'steady' }),
            aCheck({ id: 'mode', expected: 'reject', observed: 'reject' }),
            aCheck({ id: 'broken' }),
          ],
        }),
      ],
    }),
    aRun({
      proxy: 'iptables-nft',
      cases: [
        aCase({
          checks: [
            aCheck({ id: 'steady' }),
            aCheck({ id: 'mode', expected: 'pass', observed: 'pass' }),
            aFailedCheck({ id: 'broken' }),
          ],
        }),
      ],
    }),
    aRun({ proxy: 'ebpf-tc', cases: [aSkip(id, 'not for <ebpf>')] }),
    aRun({ proxy: 'other', cases: [aCase({ id: 'else' })] }),
  ),
);
const html = detailHtml(data, id, 'iptables-nft/dual') ?? '';
const rows = [...html.matchAll(/<tr><th scope="row">.*?<\/tr>/gs)].map(([row]) => row);

test('what is wrong comes first, then what differs', () => {
  expect(rows.map((row) => /<small>([^<]+)<\/small><\/th>|>(reason)</.exec(row)?.slice(1).join(''))).toEqual([
    'reason',
    'broken',
    'mode',
    'steady',
  ]);
});

test.each([
  { row: 1, cells: ['forward to 10.244.1.5', '✓', '✗ drop', 'not looked at'] },
  { row: 2, cells: ['differs by mode', '✓ reject', '✓ pass', 'not looked at'] },
  { row: 3, cells: ['forward to 10.244.1.5', '✓', '✓', 'not looked at'] },
])('row $row says $cells', ({ row, cells }) => {
  const found = [...(rows[row] ?? '').matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell]) =>
    (cell ?? '').replaceAll(/<[^>]+>/g, ''),
  );
  expect(found).toEqual(cells);
});

test('how it ended with each proxy, why not, and which one was pointed at', () => {
  expect(html).toContain(
    '<th scope="col" class="chosen">iptables-nft <small>dual</small><span class="outcome"><span class="is-failed">failed</span>',
  );
  expect(html).toContain('<td>not for &#60;ebpf&#62;</td>');
  expect(html).not.toContain('other');
});

test.each(['no/such', 'constructor', '__proto__'])('%s is no case', (name) => {
  expect(detailHtml(data, name, '')).toBeUndefined();
});
