import { NftError, type NftRefusal, type RuleTrial } from '@switchyard/backend-nftables';
import { expect, test } from 'vitest';
import { probeWire } from './probe-wire.ts';

const { signal } = new AbortController();

const refusing = (refusal: NftRefusal, message: string): RuleTrial => ({
  refusal: () => new NftError(message, { refusal }),
  [Symbol.dispose]: () => undefined,
});

test.each<readonly [sentence: string, trial: RuleTrial, reason: RegExp]>([
  [
    'rights are missing',
    refusing('permission', 'the kernel answered EPERM: run as root or with CAP_NET_ADMIN'),
    /^the kernel answered EPERM: run as root or with CAP_NET_ADMIN$/,
  ],
  [
    'rules are refused',
    refusing('other', 'the kernel answered EOPNOTSUPP'),
    /^Linux \S+ refuses the guard table .*Linux 5\.9.*: the kernel answered EOPNOTSUPP$/,
  ],
])('where %s, it says so', async (_, trial, reason) => {
  expect(await probeWire({ openTrial: async () => trial }, signal)).toEqual([expect.stringMatching(reason)]);
});
