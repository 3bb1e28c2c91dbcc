import { expect, test } from 'vitest';
import { aCase, aCheck, aFailedCheck, anError, aReport, aRollout, aRun, aSkip } from '../testing/report-builders.ts';
import { junitXml } from './junit.ts';
import { escapeMarkup } from './markup.ts';

test('a suite per run, a case per case, with everything CI systems show', () => {
  const cases = [
    aCase({ rollouts: [aRollout()] }),
    aCase({ id: 'b', checks: [aFailedCheck(), aCheck(), aFailedCheck({ id: 'pod/tcp' })] }),
    aSkip('c', 'the environment has no SCTP'),
    anError('d', 'the API server ended'),
  ];
  const xml = junitXml(aReport(aRun({ cases }), aRun({ proxy: 'ebpf-tc', round: 2 })));
  expect(xml).toContain(
    '<testsuites name="switchyard-conformance" tests="5" failures="1" errors="1" skipped="1" time="130.000">',
  );
  expect(xml).toContain(
    '<testsuite name="nftables dual lab" tests="4" failures="1" errors="1" skipped="1" time="65.000" timestamp="2026-01-31T12:00:00.000Z">',
  );
  expect(xml).toContain('<testsuite name="ebpf-tc dual lab round 2" tests="1"');
  expect(xml).toContain('<property name="kernel" value="6.12.9"/>');
  expect(xml).toContain('<testcase name="scenario/etp-local/ipv4" classname="nftables.dual.scenario" time="0.400">');
  expect(xml).toContain('<skipped message="the environment has no SCTP"/>');
  expect(xml).toContain('<error type="lab" message="the API server ended">the API server ended</error>');
  expect(xml).toContain(
    '<failure type="conformance" message="outside to 198.51.100.7:80/TCP: expected forward to 10.244.1.5, observed drop (and 1 more)">',
  );
  expect(xml.match(/services: verdict drop/g)).toHaveLength(2);
  expect(xml).toContain('2 of 5 requests lost');
});

test('a check without a verdict is in the output of its case, which passes', () => {
  const inconclusive = [{ id: 'outside/udp', what: 'outside to 172.18.0.11:30000/UDP', because: 'rate limited: 7' }];
  const xml = junitXml(aReport(aRun({ cases: [aCase({ inconclusive })] })));
  expect(xml).toContain('failures="0" errors="0" skipped="0"');
  expect(xml).toContain('inconclusive outside/udp, outside to 172.18.0.11:30000/UDP: rate limited: 7</system-out>');
});

test('a testsuite has as many testcases as it says, and all elements are closed', () => {
  const cases = Array.from({ length: 7 }, (_, index) => aCase({ id: `case ${index}` }));
  const xml = junitXml(aReport(aRun({ cases })));
  expect(xml.match(/<testcase /g)).toHaveLength(7);
  const open: string[] = [];
  for (const [, slash, name, end] of xml.matchAll(/<(\/?)([a-z-]+)[^>]*?(\/?)>/g)) {
    if (slash === '/') expect(open.pop()).toBe(name);
    else if (end !== '/') open.push(name ?? '');
  }
  expect(open).toEqual([]);
});

test.each([
  { text: `</failure><x a="'">&amp;`, written: '&#60;/failure&#62;&#60;x a=&#34;&#39;&#34;&#62;&#38;amp;' },
  { text: 'a\tb\nc', written: 'a&#9;b&#10;c' },
  { text: '\u0000\u001B[31m\uFFFF', written: '\uFFFD\uFFFD[31m\uFFFD' },
  { text: 'half \uD83D of a pair', written: 'half \uFFFD of a pair' },
  { text: 'ü 日本 🙂', written: 'ü 日本 🙂' },
  { text: ']]>', written: ']]&#62;' },
])('$text is written so that XML holds it', ({ text, written }) => {
  expect(escapeMarkup(text)).toBe(written);
  const xml = junitXml(aReport(aRun({ cases: [aCase({ id: text, checks: [aFailedCheck({ observed: text })] })] })));
  expect(xml).toContain(` name="${written}"`);
});
