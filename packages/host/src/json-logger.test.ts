import { HostError } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { createJsonLogger, type LogLevel } from './logger.ts';

function linesOf(level: LogLevel, log: (logger: ReturnType<typeof createJsonLogger>) => void): unknown[] {
  const lines: string[] = [];
  log(createJsonLogger(level, { write: (line) => lines.push(line) }));
  return lines.map((line) => JSON.parse(line) as unknown);
}

describe('createJsonLogger', () => {
  test('a line carries level, message and fields', () => {
    const [line] = linesOf('info', (logger) => logger.info('applied', { generation: 3, ipFamily: 'IPv4' }));
    expect(line).toMatchObject({ level: 'info', msg: 'applied', generation: 3, ipFamily: 'IPv4' });
  });

  test('the time is the wall clock in milliseconds', () => {
    const before = Date.now();
    const [line] = linesOf('info', (logger) => logger.info('now')) as [{ readonly time: number }];
    expect(line.time).toBeGreaterThanOrEqual(before);
    expect(line.time).toBeLessThanOrEqual(Date.now());
  });

  test.each([
    ['error', ['error']],
    ['warn', ['error', 'warn']],
    ['info', ['error', 'warn', 'info']],
    ['debug', ['error', 'warn', 'info', 'debug']],
    ['trace', ['error', 'warn', 'info', 'debug', 'trace']],
  ] as const)('level %s prints %j', (level, printed) => {
    const lines = linesOf(level, (logger) => {
      for (const method of ['error', 'warn', 'info', 'debug', 'trace'] as const) logger[method]('x');
    });
    expect(lines).toEqual(printed.map((label) => expect.objectContaining({ level: label })));
  });

  test('the level may change', () => {
    const lines: string[] = [];
    const logger = createJsonLogger('info', { write: (line) => lines.push(line) });
    logger.debug('before');
    logger.setLevel('debug');
    logger.debug('after');
    expect(lines).toEqual([expect.stringContaining('"after"')]);
  });

  test('an error among the fields is printed with its cause, without a stack', () => {
    const error = new HostError('host.port', 'cannot listen', { cause: new Error('EADDRINUSE') });
    const [line] = linesOf('info', (logger) => logger.warn('health', { error }));
    expect(line).toMatchObject({
      error: {
        name: 'HostError',
        code: 'host.port',
        message: 'cannot listen',
        cause: { name: 'Error', message: 'EADDRINUSE' },
      },
    });
    expect(JSON.stringify(line)).not.toContain('json-logger.test');
  });
});
