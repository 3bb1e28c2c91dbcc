import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, millis, serviceKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import { openEventLog, serverEvent } from './event-log.ts';

const id = { cluster: 'kind', service: serviceKey('default', 'zeroapp') };
const change = {
  id,
  time: millis(1795257934536.25),
  isUp: false,
  port: 80,
  ipFamily: 'IPv6',
  target: 'node1',
  reason: 'Layer4 timeout',
} as const;

test('an event is one JSON line with a fractional wall-clock time', () => {
  const folder = mkdtempSync(join(tmpdir(), 'swy-lb-'));
  const file = join(folder, 'events.jsonl');
  try {
    using log = openEventLog(file);
    log.append(serverEvent(change));
    log.append(serverEvent({ ...change, isUp: true }));
    expect(readFileSync(file, 'utf8')).toBe(
      '{"time":1795257934536.25,"kind":"server-down","cluster":"kind","service":"default/zeroapp","node":"node1","reason":"Layer4 timeout","port":80,"ipFamily":"IPv6"}\n' +
        '{"time":1795257934536.25,"kind":"server-up","cluster":"kind","service":"default/zeroapp","node":"node1","reason":"Layer4 timeout","port":80,"ipFamily":"IPv6"}\n',
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a file that cannot be opened is the operator’s mistake', () => {
  expect(() => openEventLog('/nowhere/events.jsonl')).toThrow(ConfigError);
});
