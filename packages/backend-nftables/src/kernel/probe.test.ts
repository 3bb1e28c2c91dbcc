import { describe, expect, test } from 'vitest';
import { NftError, type NftRefusal } from './nft-error.ts';
import { probeHost, type RuleTrial } from './probe.ts';
import type { TableDescription } from '../render/rules/model.ts';
import { printItem } from '../render/rules/print.ts';

const { signal } = new AbortController();

/** A kernel that refuses tables whose text matches, for one reason. */
function trialRefusing(
  pattern: RegExp,
  refusal: NftRefusal,
  message: string,
): RuleTrial & { readonly names: string[] } {
  const names: string[] = [];
  return {
    names,
    refusal: ({ name, items }: TableDescription) => {
      names.push(name);
      return pattern.test(items.flatMap(printItem).join('\n')) ? new NftError(message, { refusal }) : undefined;
    },
    [Symbol.dispose]: () => undefined,
  };
}

describe('probeHost', () => {
  test('a kernel that takes the rules is usable', async () => {
    const trial = trialRefusing(/never/, 'other', '');
    expect(await probeHost({ openTrial: async () => trial, release: '6.1.0' }, signal)).toMatchObject({
      status: 'usable',
      capabilities: { sessionAffinity: true, sourceRanges: true },
    });
    expect(trial.names).toEqual(['switchyard-probe-rules']);
  });

  test('where rights are missing, that is the only reason', async () => {
    const trial = trialRefusing(/./, 'permission', 'the kernel answered EPERM; run as root or with CAP_NET_ADMIN');
    expect(await probeHost({ openTrial: async () => trial }, signal)).toEqual({
      status: 'unusable',
      reasons: ['the kernel answered EPERM; run as root or with CAP_NET_ADMIN'],
    });
  });

  test('a kernel that lacks something is unusable, and what it lacks is named with its release and answer', async () => {
    const trial = trialRefusing(
      /reject;|^ *reject$|counter;.*elements|map m .*counter/m,
      'other',
      'it answered EOPNOTSUPP',
    );
    expect(await probeHost({ openTrial: async () => trial, release: '5.4.0-26' }, signal)).toEqual({
      status: 'unusable',
      reasons: [
        'missing: reject in prerouting chains; needs Linux 5.9 with CONFIG_NFT_REJECT_INET, this is Linux 5.4.0-26: it answered EOPNOTSUPP',
        'missing: counters in elements of maps; needs Linux 5.7, this is Linux 5.4.0-26: it answered EOPNOTSUPP',
        'Linux 5.4.0-26 refuses the rule set: it answered EOPNOTSUPP',
      ],
    });
    expect(new Set(trial.names).size).toBe(trial.names.length); // tables of a trial stay until it ends
  });
});
