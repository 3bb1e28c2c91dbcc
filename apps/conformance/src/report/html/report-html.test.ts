import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CaseResult, ReportFile } from '../../model/report-file.ts';
import { bigReport } from '../../testing/big-report.ts';
import { aCase, aCheck, aFailedCheck, anError, aReport, aRollout, aRun, aSkip } from '../../testing/report-builders.ts';
import type { PageData } from '../matrix.ts';
import { pageScript } from '../page-script.generated.ts';
import { diffHtml } from '../diff-text.ts';
import { pickSide, diffRuns } from '../diff.ts';
import { reportHtml } from './report-html.ts';

const everything = aReport(
  aRun({
    cases: [
      aCase({ checks: [aCheck(), aFailedCheck({ id: 'node/udp' })] }),
      anError('sequence/agent-down/ipv4', 'the API server ended'),
      aSkip('scenario/sctp/ipv4', 'the environment has no SCTP'),
      aCase({ id: 'rollout/deployment/Local/ipv4', rollouts: [aRollout()] }),
      aCase({ id: 'matrix/nodePort/Local/ready-remote-only/ipv4', tags: ['matrix'] }),
    ],
  }),
  aRun({ proxy: 'iptables-nft' }),
);

/** The data that the script reads. */
function dataOf(page: string): PageData {
  const json = /<script type="application\/json" id="data">(.*?)<\/script>/.exec(page)?.[1];
  return JSON.parse(json ?? 'null') as PageData;
}

describe('the page of a report', () => {
  const page = reportHtml(everything);

  test('fetches nothing, and may run no script but its own', () => {
    expect(page.replace(pageScript, '')).not.toMatch(/<link|<img|<iframe|https?:\/\/|url\(|@import/);
    expect(page).toMatch(
      /default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;; script-src &#39;sha256-[\w+/]+=&#39;/,
    );
  });

  test.each(['filter', 'words', 'tag', 'only', 'shown', 'cases', 'detail', 'detail-body', 'close', 'data'])(
    'has the #%s that the script looks for',
    (id) => {
      expect(pageScript).toContain(id);
      expect(page.match(new RegExp(` id="${id}"`, 'g'))).toHaveLength(1);
    },
  );

  test.each([
    'fieldset',
    'name="status"',
    'type="reset"',
    'class="group"',
    'class="failure-body"',
    'class="title"',
    'data-choose=',
    'data-words=',
    'data-proxy=',
    'aria-expanded="false"',
  ])('has %s, which the script or the styles look for', (what) => {
    expect(page).toContain(what);
  });

  test('a row per case, with a cell per proxy that says how it went, also to who does not see colours', () => {
    expect(page.match(/<tr data-id="/g)).toHaveLength(5);
    expect(page).toContain(
      '<td class="c-failed" tabindex="0" aria-label="failed">✗</td><td class="c-passed" tabindex="-1" aria-label="passed">✓</td>',
    );
    expect(page).toContain('<td class="c-error" tabindex="-1" aria-label="lab error">!</td><td class="c-none"');
    expect(page.match(/ tabindex="0"/g)).toHaveLength(1);
  });

  test('folded groups still show what is bad', () => {
    const hidden = [...page.matchAll(/<tr data-id="([^"]+)"[^>]* hidden>/g)].map(([, id]) => id);
    expect(hidden).toEqual([
      'scenario/sctp/ipv4',
      'rollout/deployment/Local/ipv4',
      'matrix/nodePort/Local/ready-remote-only/ipv4',
    ]);
  });

  test('a failure has its path by the table and in the kernel', () => {
    expect(page).toContain(
      'path by Switchyard\'s table</h4><ol class="mono"><li>frontend 198.51.100.7:80/TCP of default/web</li>',
    );
    expect(page).toContain('path in the kernel</h4><ol class="mono"><li>prerouting: jump services</li>');
  });

  test('skips by reason, rolling updates drawn', () => {
    expect(page).toContain('<td class="number">1</td><td>the environment has no SCTP');
    expect(page).toContain('<strong>Deployment behind externalTrafficPolicy: Local</strong>');
    expect(page).toContain('No picture: the report file has none');
  });

  test('the flake column is there with several rounds only', () => {
    expect(page).not.toContain('<th scope="col"><span>flaky');
    const rounds = reportHtml(aReport(aRun(), aRun({ round: 2, cases: [aCase({ checks: [aFailedCheck()] })] })));
    expect(rounds).toContain('<th scope="col"><span>flaky<small>rounds</small></span></th>');
    expect(rounds).toContain('<td class="flakes">1 of 2</td>');
    expect(rounds).toContain('aria-label="flaky">~</td>');
  });

  test('the script knows what each proxy saw', () => {
    const { cases, strings, columns } = dataOf(page);
    const [seen] = cases['scenario/etp-local/ipv4']?.cells[1]?.checks ?? [];
    expect(columns.map(({ key }) => key)).toEqual(['nftables/dual', 'iptables-nft/dual']);
    expect(strings[seen?.observed ?? -1]).toBe('forward to 10.244.1.5');
  });
});

const evil = `</script></style><img src=x onerror=alert(1)>"'&amp;\u0000<svg onload=alert(2)>`;
const hostile = aReport(
  aRun({
    proxy: `nft${evil}`,
    kernel: evil,
    cases: [
      aCase({
        id: `matrix/${evil}/Local/x/ipv4`,
        title: evil,
        why: evil,
        tags: [evil],
        checks: [
          aFailedCheck({
            id: evil,
            what: evil,
            expected: evil,
            observed: evil,
            because: [evil],
            path: [{ run: 'packets', lines: [evil] }],
          }),
        ],
        rollouts: [
          aRollout({
            title: evil,
            svg: `<svg onload="alert(3)"></svg>`,
            outcomes: [[1, evil]],
            events: [{ at: 1, lane: evil, text: evil }],
          }),
        ],
      }),
      aSkip('__proto__', evil),
      anError('constructor', evil),
    ],
  }),
);

test('any content of a report is text on the page', () => {
  const page = reportHtml(hostile);
  expect(page).not.toMatch(/<img|onload="|<svg onload/);
  expect(page.match(/<script/g)).toHaveLength(2);
  expect(page.match(/<\/script>/g)).toHaveLength(2);
  expect(page.match(/<\/style>/g)).toHaveLength(1);
  expect(Object.keys(dataOf(page).cases)).toEqual([`matrix/${evil}/Local/x/ipv4`, '__proto__', 'constructor']);
});

test('and so on the page of a comparison', () => {
  const other = aReport(
    aRun({ cases: [aCase({ id: `matrix/${evil}/Local/x/ipv4`, checks: [aCheck({ id: evil, observed: 'a' })] })] }),
  );
  const page = diffHtml(diffRuns(pickSide(evil, hostile, undefined), pickSide('b', other, undefined)));
  expect(page).not.toMatch(/<img|<svg|<script/);
  expect(page.match(/<\/style>/g)).toHaveLength(1);
});

const anyCase: fc.Arbitrary<CaseResult> = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    status: fc.constantFrom('passed', 'failed', 'skipped', 'error'),
  })
  .map(({ name, status }) => {
    const id = `scenario/${name}/ipv4`;
    if (status === 'skipped') return aSkip(id, 'why');
    if (status === 'error') return anError(id, 'why');
    return aCase({ id, checks: status === 'failed' ? [aFailedCheck({ observed: 'wrong' })] : [aCheck()] });
  });
const anyReport: fc.Arbitrary<ReportFile> = fc
  .array(
    fc.record({
      proxy: fc.constantFrom('nftables', 'ebpf-tc'),
      round: fc.constantFrom(1, 2, 3),
      cases: fc.uniqueArray(anyCase, { selector: ({ id }) => id }),
    }),
    { maxLength: 6 },
  )
  .map((runs) => aReport(...runs.map(aRun)));

test('every failure and error of a proxy is shown exactly once for any number of rounds', () => {
  fc.assert(
    fc.property(anyReport, (report) => {
      const wanted = (status: string): readonly string[] => {
        const all = report.runs.flatMap(({ proxy, cell, cases }) =>
          cases.filter((one) => one.status === status).map(({ id }) => `${id} ${proxy.name}/${cell}`),
        );
        return [...new Set(all)].sort();
      };
      const page = reportHtml(report);
      const told = (pattern: RegExp): readonly string[] =>
        [...page.matchAll(pattern)].map(([, id, proxy]) => `${id ?? ''} ${proxy ?? ''}`).sort();
      expect(told(/<article class="failure" data-case="([^"]+)" data-proxy="([^"]+)">/g)).toEqual(wanted('failed'));
      expect(told(/<li><a href="#case=([^"]+)&#38;proxy=([^"]+)">/g)).toEqual(wanted('error'));
    }),
    { numRuns: 60 },
  );
});

test('a page of 800 cases and five proxies stays below 4 MB', () => {
  const proxies = ['nftables', 'iptables-nft', 'iptables-legacy', 'ebpf-tc', 'ebpf-nftables'];
  const page = reportHtml(bigReport({ proxies, rounds: 1, scenarios: 582, failing: 0.001 }));
  expect(page.length).toBeLessThan(4_000_000);
  expect(page.match(/<tr data-id="/g)).toHaveLength(800);
});
