import { ConfigError } from '@switchyard/core';
import { expect, test } from 'vitest';
import { parseCheckFlags } from './check-flags.ts';

test.each<[what: string, flags: readonly string[], env: Readonly<Record<string, string>>, file: string]>([
  ['--kubeconfig before the variable', ['--kubeconfig', '/flag'], { KUBECONFIG: '/env', HOME: '/home/me' }, '/flag'],
  ['the first file of the variable', [], { KUBECONFIG: '/env:/more', HOME: '/home/me' }, '/env'],
  ['the home directory’s', [], { HOME: '/home/me' }, '/home/me/.kube/config'],
  [
    'the home directory’s where the variable is empty',
    [],
    { KUBECONFIG: '', HOME: '/home/me' },
    '/home/me/.kube/config',
  ],
])('which API server is said by %s', (_, flags, env, file) => {
  expect(parseCheckFlags(['web', ...flags], env)).toMatchObject({ kubeconfig: file });
});

test.each<[what: string, args: readonly string[], message: RegExp]>([
  ['no kubeconfig', ['web'], /give --kubeconfig FILE/],
  ['no Service', ['--kubeconfig', '/k'], /missing required argument 'service'/],
  ['an unknown profile', ['web', '--kubeconfig', '/k', '--health-check-profile', 'x'], /no health-check profile/],
  ['a wrong duration', ['web', '--kubeconfig', '/k', '--drain-time', 'long'], /--drain-time: not a duration/],
])('%s is an error that says so', (_, args, message) => {
  expect(() => parseCheckFlags(args, {})).toThrow(ConfigError);
  expect(() => parseCheckFlags(args, {})).toThrow(message);
});
