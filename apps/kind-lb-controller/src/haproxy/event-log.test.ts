import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, millis, parsePort, serviceKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import { openEventLog, serverEvent } from './event-log.ts';
import { backendName, parseBackendName, safeName } from './haproxy-names.ts';

const change = {
  time: millis(1795257934536.25),
  isUp: false,
  backend: backendName(serviceKey('default', 'zeroapp'), parsePort(80), 'IPv6'),
  server: 'node1',
  reason: 'Layer4 timeout',
};

test('an event is one JSON line with a fractional wall-clock time', () => {
  const folder = mkdtempSync(join(tmpdir(), 'swy-lb-'));
  const file = join(folder, 'events.jsonl');
  try {
    using log = openEventLog(file);
    log.append(serverEvent(change)!);
    log.append(serverEvent({ ...change, isUp: true })!);
    expect(readFileSync(file, 'utf8')).toBe(
      '{"time":1795257934536.25,"kind":"server-down","service":"default/zeroapp","node":"node1","reason":"Layer4 timeout","port":80,"ipFamily":"IPv6"}\n' +
        '{"time":1795257934536.25,"kind":"server-up","service":"default/zeroapp","node":"node1","reason":"Layer4 timeout","port":80,"ipFamily":"IPv6"}\n',
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a backend that is not ours gives no event', () => {
  expect(serverEvent({ ...change, backend: 'GLOBAL' })).toBeUndefined();
});

test('a file that cannot be opened is the operator’s mistake', () => {
  expect(() => openEventLog('/nowhere/events.jsonl')).toThrow(ConfigError);
});

test.each(['GLOBAL', 'a:b', 'a:b:80', 'a:b:0:ipv4', 'a:b:80:ipx', 'a:b:80:ipv4:c', 'a:b::ipv4'])(
  '%s is not the name of a backend of ours',
  (name) => {
    expect(parseBackendName(name)).toBeUndefined();
  },
);

test('names cannot bring lines or words of their own into the configuration', () => {
  expect(safeName('x\n    server evil 1.2.3.4:80')).toBe('x_____server_evil_1.2.3.4:80');
  expect(safeName('ip-10-0-0-1.eu-west-1.compute.internal')).toBe('ip-10-0-0-1.eu-west-1.compute.internal');
});
