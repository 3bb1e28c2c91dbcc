import { describe, expect, test } from 'vitest';
import { judge, parseJunit, parseTestList } from './results.ts';

test('names are read out of the list of tests, and other lines are not', () => {
  const text = `I1122 05:00:00.000000 1 e2e.go:109] Starting e2e run
The following spec names can be used with 'ginkgo run --focus/skip':
    test/e2e/network/service.go:1234: [sig-network] Services should be: able [Conformance]
    test/e2e/storage/x.go:7: [sig-storage] [Slow] Volumes should work

`;
  expect(parseTestList(text)).toEqual([
    '[sig-network] Services should be: able [Conformance]',
    '[sig-storage] [Slow] Volumes should work',
  ]);
});

const xml = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="6"><testsuite name="Kubernetes e2e suite">
<properties><property name="SuiteSucceeded" value="false"></property></properties>
<testcase name="[SynchronizedBeforeSuite]" classname="x" status="passed" time="0.1"></testcase>
<testcase name="[It] [sig-network] A &#34;quoted&#34; &amp; &lt;b&gt;" classname="x" status="passed" time="1.2"/>
<testcase name="[It] B" status="failed" time="3"><failure type="failed">[FAILED] line one
line two&#xA;line three</failure><system-err>noise</system-err></testcase>
<testcase name="[It] C" status="timedout" time="3"><system-err>noise</system-err></testcase>
<testcase name="[It] D" status="skipped"><skipped message="skipped - only for 3 zones"></skipped></testcase>
<testcase name="[It] E" status="panicked"><error type="panicked"><![CDATA[nil <map>]]></error></testcase>
</testsuite></testsuites>`;

describe('a JUnit report of ginkgo', () => {
  test('has each case: name, result and message', () => {
    expect(parseJunit(xml).map(({ name, status, message, isTest }) => [name, status, message, isTest])).toEqual([
      ['[SynchronizedBeforeSuite]', 'passed', '', false],
      ['[sig-network] A "quoted" & <b>', 'passed', '', true],
      ['B', 'failed', '[FAILED] line one\nline two\nline three', true],
      ['C', 'failed', '', true],
      ['D', 'skipped', 'skipped - only for 3 zones', true],
      ['E', 'failed', 'nil <map>', true],
    ]);
  });

  test('that is none has no cases', () => {
    expect(parseJunit('no report')).toEqual([]);
  });

  test('is compared with what was to run', () => {
    const verdict = judge({ run: ['B', 'D', 'F', '[sig-network] A "quoted" & <b>'] }, parseJunit(xml));
    expect(verdict).toEqual({
      passed: ['[sig-network] A "quoted" & <b>'],
      failed: [{ name: 'B', message: '[FAILED] line one\nline two\nline three' }],
      skippedThemselves: [{ name: 'D', message: 'skipped - only for 3 zones' }],
      missing: ['F'],
    });
  });

  test('in which the suite itself failed is a failure, though no test did', () => {
    const text =
      '<testcase name="[SynchronizedBeforeSuite]" status="failed"><failure>no node is schedulable</failure></testcase>';
    expect(judge({ run: [] }, parseJunit(text)).failed).toEqual([
      { name: '[SynchronizedBeforeSuite]', message: 'no node is schedulable' },
    ]);
  });
});
