import { type LogFields, noopLogger, noopMetrics, parseIp, parsePort, proxyHealth, seconds } from '@switchyard/core';
import { ManualClock, MemoryHttpListener, settle } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { serveHttpEndpoints } from './http-endpoints.ts';

test('a port in use is tried again every five seconds, with one warning', async () => {
  const clock = new ManualClock();
  const listener = new MemoryHttpListener();
  const warnings: (LogFields | undefined)[] = [];
  const stop = new AbortController();
  listener.setTaken('127.0.0.1:10256', true);
  const served = serveHttpEndpoints(
    {
      address: parseIp('127.0.0.1'),
      port: parsePort(10256),
      listener,
      health: () => proxyHealth({ families: new Map(), timeout: seconds(60), isNodeEligible: true }),
      clock,
      logger: { ...noopLogger, warn: (_, fields) => void warnings.push(fields) },
      metrics: noopMetrics,
    },
    stop.signal,
  );
  await clock.advance(9000);
  expect(listener.refused).toHaveLength(2);
  listener.setTaken('127.0.0.1:10256', false);
  await clock.advance(1000);
  expect(listener.get('127.0.0.1:10256', '/livez')?.status).toBe(200);
  expect(warnings).toHaveLength(1);
  stop.abort();
  await served;
  await settle();
  expect(listener.places).toEqual([]);
});

test('stopping while a port is in use ends at once', async () => {
  const clock = new ManualClock();
  const listener = new MemoryHttpListener();
  listener.setTaken('[::1]:80', true);
  const stop = new AbortController();
  const served = serveHttpEndpoints(
    {
      address: parseIp('::1'),
      port: parsePort(80),
      listener,
      health: () => proxyHealth({ families: new Map(), timeout: seconds(60), isNodeEligible: true }),
      clock,
      logger: noopLogger,
      metrics: noopMetrics,
    },
    stop.signal,
  );
  await settle();
  stop.abort();
  await served;
  expect(clock.sleeping).toBe(0);
});
