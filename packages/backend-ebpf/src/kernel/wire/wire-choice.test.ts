import { HostError } from '@switchyard/core';
import type { BpfAbilityName } from '@switchyard/native';
import { expect, test } from 'vitest';
import type { EbpfHost } from '../host.ts';
import { kernelWithout } from '../../testing/kernel-without.ts';
import { askedOnce, chooseWire, type WireAbilities, wireFaults } from './wire-choice.ts';

const { signal } = new AbortController();
const refused = 'the kernel makes no conntrack entry';

interface Kernel {
  readonly lacks?: readonly BpfAbilityName[];
  readonly refuses?: readonly string[];
  readonly fails?: boolean;
}

function kernel({ lacks = [], refuses = [], fails = false }: Kernel): WireAbilities {
  return {
    probe: () => kernelWithout(...lacks),
    probeWire: async () => {
      if (fails) throw new HostError('test.timeout', 'the kernel does not answer');
      return refuses;
    },
  };
}

type Asked = Pick<EbpfHost, 'northSouth' | 'socketLb'>;
const auto: Asked = { northSouth: 'auto', socketLb: 'all' };
const tc: Asked = { northSouth: 'tc', socketLb: 'all' };

test.each<[sentence: string, asked: Asked, kernel: Kernel, kind: string, why: RegExp]>([
  ['by programs where the kernel can', auto, {}, 'tc', /made an entry/],
  [
    'by rules where programs have no conntrack',
    auto,
    { lacks: ['conntrackNat'] },
    'nftables',
    /^the kernel lacks conn/,
  ],
  ['by rules where programs load but make no entry', auto, { refuses: [refused] }, 'nftables', /^the kernel makes no/],
  ['by rules where configured', { ...auto, northSouth: 'nftables' }, {}, 'nftables', /^as configured$/],
  ['by rules where pods need them anyway', { ...auto, socketLb: 'host' }, {}, 'nftables', /^pods are served by rules$/],
  ['by programs where configured', tc, { refuses: [refused] }, 'tc', /^as configured$/],
])('traffic from outside is forwarded %s', async (_, asked, found, kind, why) => {
  const choice = await chooseWire(asked, signal, kernel(found));
  expect(choice).toEqual({ kind, why: expect.stringMatching(why) });
});

test('where it cannot be found out, nothing is chosen', async () => {
  await expect(chooseWire(auto, signal, kernel({ fails: true }))).rejects.toThrow('does not answer');
});

test.each<[sentence: string, asked: Asked, kernel: Kernel, faults: readonly RegExp[]]>([
  ['none where the kernel can', tc, {}, []],
  ['what the kernel lacks', tc, { lacks: ['conntrackNat'] }, [/^the kernel lacks conn.*: use --.*=auto or nftables$/]],
  ['what failed when it was tried', tc, { refuses: [refused] }, [/^the kernel makes no.*: use --.*=auto or nftables$/]],
  ['that it could not be tried', tc, { fails: true }, [/^the kernel does not answer$/]],
  ['that pods are left to rules', { ...tc, socketLb: 'host' }, {}, [/^--switchyard-ebpf-socket-lb=host leaves pods/]],
  ['none with auto, for rules do it', auto, { refuses: [refused] }, []],
  ['none with auto, also where it could not be tried', auto, { fails: true }, []],
])('reasons to refuse: %s', async (_, asked, found, faults) => {
  const reasons = await wireFaults(asked, signal, kernel(found));
  expect(reasons).toEqual(faults.map((fault) => expect.stringMatching(fault)));
});

test('one probe serves all callers, and runs again after a failure', async () => {
  let asked = 0;
  const ask = askedOnce(async () => {
    asked++;
    if (asked === 1) throw new HostError('test.timeout', 'the kernel does not answer');
    return [refused];
  });
  await expect(ask(signal)).rejects.toThrow('does not answer');
  expect(await Promise.all([ask(signal), ask(signal)])).toEqual([[refused], [refused]]);
  expect(await ask(signal)).toEqual([refused]);
  expect(asked).toBe(2);
});
