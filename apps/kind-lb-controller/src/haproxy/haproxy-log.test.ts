import { describe, expect, test } from 'vitest';
import { errorsIn, parseServerState } from './haproxy-log.ts';
import { parseMasterState } from './haproxy-master.ts';

// Lines as HAProxy 2.6.12 writes them.
describe('parseServerState', () => {
  test.each([
    {
      line: 'Server default:zeroapp:80:ipv4/node1 is DOWN, reason: Layer7 wrong status, code: 503, info: "Service Unavailable", check duration: 1ms. 1 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.',
      change: { isUp: false, server: 'node1', reason: 'Layer7 wrong status, code: 503, info: "Service Unavailable"' },
    },
    {
      line: 'Server default:zeroapp:80:ipv4/node-2.x is DOWN, reason: Layer4 timeout, check duration: 200ms. 0 active and 0 backup servers left. 3 sessions active, 0 requeued, 0 remaining in queue.',
      change: { isUp: false, server: 'node-2.x', reason: 'Layer4 timeout' },
    },
    {
      line: 'Server default:zeroapp:80:ipv4/node1 is UP, reason: Layer7 check passed, code: 200, check duration: 0ms. 1 active and 0 backup servers online. 0 sessions requeued, 0 total in queue.',
      change: { isUp: true, server: 'node1', reason: 'Layer7 check passed, code: 200' },
    },
    {
      line: 'Server default:zeroapp:80:ipv4/node1 is UP. 1 active and 0 backup servers online. 0 sessions requeued, 0 total in queue.',
      change: { isUp: true, server: 'node1', reason: '' },
    },
    {
      line: 'Backup Server default:zeroapp:80:ipv4/node1 is DOWN, reason: Layer4 connection problem, info: "Connection refused", check duration: 0ms. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.',
      change: { isUp: false, server: 'node1', reason: 'Layer4 connection problem, info: "Connection refused"' },
    },
  ])('$line', ({ line, change }) => {
    expect(parseServerState(line)).toEqual({ backend: 'default:zeroapp:80:ipv4', ...change });
  });
  test.each([
    'backend default:zeroapp:80:ipv4 has no server available!',
    'Proxy default:zeroapp:80:ipv4 stopped (cumulated conns: FE: 0, BE: 1).',
    'Health check for server default:zeroapp:80:ipv4/node1 failed, reason: Layer7 wrong status, code: 503, info: "Service Unavailable", check duration: 1ms, status: 2/3 UP.',
    '',
  ])('is no state change: %s', (line) => {
    expect(parseServerState(line)).toBeUndefined();
  });
});

describe('errorsIn', () => {
  test('prefers ALERT lines, without their prefix', () => {
    const stderr =
      '[NOTICE]   (1) : haproxy version is 2.6.12\n[ALERT]    (1) : config : parsing [a.cfg:9] : unknown keyword\n[ALERT]    (1) : config : Fatal errors found\n';
    expect(errorsIn(stderr)).toBe('config : parsing [a.cfg:9] : unknown keyword | config : Fatal errors found');
  });
  test('takes the last lines where there is no ALERT', () => {
    expect(errorsIn('a\nb\n\nc\nd\n')).toBe('b | c | d');
  });
});

describe('parseMasterState', () => {
  const answer = `#<PID>          <type>          <reloads>       <uptime>        <version>      \n24596           master          3 [failed: 1]   0d00h00m04s     2.6.12-1+deb12u4\n# workers\n24738           worker          0               0d00h00m01s     2.6.12-1+deb12u4\n# old workers\n24599           worker          1               0d00h00m04s     2.6.12-1+deb12u4\n# programs\n\n`;
  test('has pid, reloads and the current workers, not the old ones', () => {
    expect(parseMasterState(answer)).toEqual({ pid: 24596, reloads: 3, failed: 1, workers: [24738] });
  });
  test('other answers are none', () => {
    expect(parseMasterState('Unknown command\n')).toBeUndefined();
  });
});
