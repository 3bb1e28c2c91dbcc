import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { fewestDescriptors, httpLimitsFor, proxyLimitsFor, readDescriptorLimit } from './descriptors.ts';

const limits = (text: string) => ({
  read: () =>
    `Limit                     Soft Limit           Hard Limit           Units\nMax open files            ${text}`,
});

describe('readDescriptorLimit', () => {
  test.each([
    ['64                   64                   files', 64],
    ['1048576              1048576              files', 1_048_576],
    ['unlimited            unlimited            files', Infinity],
  ])('is the one in force: %s', (text, expected) => {
    expect(readDescriptorLimit(limits(text))).toBe(expected);
  });

  test('refuses too few in one line that says what to do', () => {
    expect(() => readDescriptorLimit(limits('24                   24                   files'))).toThrow(
      'the limit of open files is 24, at least 64 are needed: raise it (ulimit -n 1024, or LimitNOFILE=1024 of a systemd unit)',
    );
  });

  test('a kernel without /proc is no reason to end', () => {
    expect(readDescriptorLimit({ read: () => undefined })).toBe(Infinity);
  });
});

test.each([
  [Infinity, 1000, 100],
  [1_048_576, 1000, 100],
  [1024, 192, 48],
  [64, 8, 8],
])(
  'with %s descriptors a socket takes %s connections, and %s of this node',
  (descriptors, connections, connectionsOfNode) => {
    expect(httpLimitsFor(descriptors)).toMatchObject({ connections, connectionsOfNode });
  },
);

test.each([
  [Infinity, Infinity, 1000],
  [1024, 120, 60],
  [64, 8, 8],
])(
  'with %s descriptors the loopback proxy has %s listeners and %s connections',
  (descriptors, listeners, connections) => {
    expect(proxyLimitsFor(descriptors)).toEqual({ listeners, connections });
  },
);

test('every launcher has the same limit', () => {
  const read = (path: string): string => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8');
  const inShell = (path: string): string | undefined => /-ge (\d+) \]/.exec(read(path))?.[1];
  expect(inShell('apps/node-agent/bin/switchyard-agent')).toBe(String(fewestDescriptors));
  const native = read('packages/native/cpp/image_launcher.cc');
  expect(/kFewestDescriptors = (\d+);/.exec(native)?.[1]).toBe(String(fewestDescriptors));
});
