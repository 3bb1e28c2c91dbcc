import { type Millis, millis } from '@switchyard/core';
import { RecordingBackend } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { dumpText, familyDumpText } from './dump-text.ts';

const { signal } = new AbortController();

function backend(body: string, age: Millis | undefined): RecordingBackend {
  const one = new RecordingBackend({ heartbeat: age === undefined ? {} : { age } });
  one.dump = () => Promise.resolve(body);
  return one;
}

test.each([
  ['no rules', '', undefined, '# IPv4: nothing of ours is in the kernel\n'],
  ['rules of an unknown age', 'a\n', undefined, '# IPv4: nobody said when the rules were last known to be right\na\n'],
  ['rules with an age', 'a\n', millis(4_600), '# IPv4: rules last known to be right 5 s ago\na\n'],
  ['no Service, but an age', '', millis(0), '# IPv4: rules last known to be right 0 s ago\n'],
])('%s', async (_, body, age, expected) => {
  expect(await familyDumpText(backend(body, age), signal)).toBe(expected);
  expect(await dumpText([backend(body, age)], signal)).toBe(expected);
});
