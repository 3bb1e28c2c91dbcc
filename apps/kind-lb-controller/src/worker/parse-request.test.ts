import { expect, test } from 'vitest';
import { exampleSpec } from '../testing/example-specs.ts';
import { parseRequest } from './parse-request.ts';

test('reads what the controller sends', () => {
  const request = { command: 'apply', spec: JSON.parse(JSON.stringify(exampleSpec('web'))), isPublished: true };
  expect(parseRequest(JSON.stringify(request))).toEqual(request);
  expect(parseRequest('{"command":"followHealth"}')).toEqual({ command: 'followHealth' });
});

test.each(['', 'null', '[]', '{"command":"stop"}', '{"command":"apply"}', '{"command":"apply","spec":{}}'])(
  'refuses %j',
  (text) => {
    expect(() => parseRequest(text)).toThrow(/^standard input is not a request: /);
  },
);
