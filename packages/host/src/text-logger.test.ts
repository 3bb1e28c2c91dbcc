import { HostError, type Logger } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type LogLevel, createTextLogger } from './logger.ts';

const time = new Date(2026, 10, 21, 9, 5, 7, 12).getTime() + 0.5;

function linesOf(level: LogLevel, log: (logger: Logger) => void): readonly string[] {
  const lines: string[] = [];
  log(createTextLogger(level, { sink: { write: (line) => lines.push(line) }, now: () => time }));
  return lines;
}

describe('createTextLogger', () => {
  test('a line is as klog writes it', () => {
    const [line] = linesOf('info', (logger) => logger.info('applied', { generation: 3, reason: 'change' }));
    const pid = String(process.pid).padStart(7);
    expect(line).toBe(`I1121 09:05:07.012500 ${pid} switchyard] "applied" generation=3 reason="change"\n`);
    // klog's line format as log collectors parse it.
    expect(line).toMatch(/^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [^ \]]+\] .*\n$/);
  });

  test.each<readonly [string, object, string]>([
    ['text', { a: 'one two' }, ' a="one two"'],
    ['a line break', { a: 'one\ntwo' }, ' a="one\\ntwo"'],
    ['a list', { a: ['x', 1] }, ' a=["x",1]'],
    ['an object', { a: { b: true } }, ' a={"b":true}'],
    ['a map', { a: new Map([['x', 1]]) }, ' a=[["x",1]]'],
    ['a big number', { a: 12n }, ' a=12'],
    ['nothing', { a: undefined, b: null }, ' b=null'],
    ['an error', { error: new HostError('x', 'no port', { cause: new Error('in use') }) }, ' error="no port: in use"'],
    [
      'an error that says its cause already',
      { error: new HostError('x', 'cannot do it: in use', { cause: new Error('in use') }) },
      ' error="cannot do it: in use"',
    ],
    [
      'an error that says what the system said',
      {
        error: new HostError('x', 'cannot listen on 1.2.3.4:80: address already in use', {
          cause: new Error('listen EADDRINUSE: address already in use 1.2.3.4:80'),
        }),
      },
      ' error="cannot listen on 1.2.3.4:80: address already in use"',
    ],
    [
      'an error whose cause is news',
      {
        error: new HostError('x', 'cannot read a', { cause: new Error("ENOENT: no such file or directory, open 'a'") }),
      },
      ` error="cannot read a: ENOENT: no such file or directory, open 'a'"`,
    ],
    [
      'several errors',
      { error: new AggregateError([new Error('one'), 'two'], 'both failed') },
      ' error="both failed: one; two"',
    ],
  ])('%s among the fields', (_, fields, expected) => {
    const [line] = linesOf('info', (logger) => logger.info('x', { ...fields }));
    expect(line?.slice(line.indexOf('] "x"') + 5)).toBe(`${expected}\n`);
  });

  test.each([
    ['error', 'E'],
    ['warn', 'EW'],
    ['info', 'EWI'],
    ['debug', 'EWII'],
    ['trace', 'EWIII'],
  ] as const)('level %s prints %s', (level, printed) => {
    const lines = linesOf(level, (logger) => {
      for (const method of ['error', 'warn', 'info', 'debug', 'trace'] as const) logger[method]('x');
    });
    expect(lines.map((line) => line[0]).join('')).toBe(printed);
  });

  test('the level may change', () => {
    const lines: string[] = [];
    const logger = createTextLogger('info', { sink: { write: (line) => lines.push(line) }, now: () => time });
    logger.debug('before');
    logger.setLevel('debug');
    logger.debug('after');
    expect(lines).toEqual([expect.stringContaining('"after"')]);
  });
});
