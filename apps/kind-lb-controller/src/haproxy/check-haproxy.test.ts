import { CommandError } from '@switchyard/host';
import { ScriptedRunner } from '@switchyard/host/testing';
import { expect, test } from 'vitest';
import { checkHaproxy } from './check-haproxy.ts';

const { signal } = new AbortController();

function check(answer: { readonly stdout: string } | Error): Promise<void> {
  return checkHaproxy('haproxy', new ScriptedRunner([{ file: 'haproxy', args: ['-v'], answer }]), signal);
}

test.each(['HAProxy version 2.6.12-1+deb12u4 2026/10/17', 'HAProxy version 3.2.0', 'HA-Proxy version 2.10.1'])(
  '%s will do',
  async (stdout) => {
    await expect(check({ stdout })).resolves.toBeUndefined();
  },
);

test.each<readonly [string, { readonly stdout: string } | Error, RegExp]>([
  ['an old one', { stdout: 'HA-Proxy version 2.2.9-2' }, /^HAProxy 2\.2 is too old: 2\.6 or newer is needed$/],
  ['another program', { stdout: 'nginx' }, /^--haproxy haproxy: it is not HAProxy: "nginx"$/],
  [
    'none at all',
    new CommandError('notFound', 'cannot run haproxy: no such program in PATH; install it', {
      file: 'haproxy',
      args: ['-v'],
    }),
    /^cannot run haproxy: .* \(the package haproxy, or give --haproxy\)$/,
  ],
])('%s is refused', async (_, answer, message) => {
  await expect(check(answer)).rejects.toMatchObject({ name: 'ConfigError', message: expect.stringMatching(message) });
});
