import { here, situation, there } from '@switchyard/core/testing';
import type { CommandRunner } from '@switchyard/host';
import { expect, test } from 'vitest';
import { FakeIptables } from '../../src/testing/index.ts';
import { Driven } from './support.ts';

/** Prints rules in other words than it was given, as another version may. */
class OtherWords extends FakeIptables {
  override async run(...call: Parameters<CommandRunner['run']>): ReturnType<CommandRunner['run']> {
    const [file, args, options] = call;
    const { onStdout, ...rest } = options;
    const result = await super.run(file, args, rest);
    const stdout = result.stdout
      .replaceAll(/^(-A KUBE-SEP-.*) -m tcp -j/gm, '$1 -j')
      .replaceAll(/^(-A KUBE-SERVICES -d \S+) -p tcp (-m comment --comment "[^"]*")/gm, '$1 $2 -p tcp');
    onStdout?.(stdout);
    return onStdout === undefined ? { ...result, stdout } : result;
  }
}

const table = situation({ cart: { endpoints: [here('10.244.1.1'), there('10.244.2.2')] } });

test.each(['nft', 'legacy'] as const)(
  'rules that %s prints in other words are written again twice, not for ever',
  async (variant) => {
    const driven = await Driven.open({ variant, iptables: new OtherWords() });
    await driven.full(table);
    // Two chains of endpoints; an entry comes and goes.
    expect(await driven.full(table)).toEqual({ status: 'applied', writes: 4 });
    expect(await driven.full(table)).toEqual({ status: 'applied', writes: 4 });
    expect(await driven.full(table)).toEqual({ status: 'applied', writes: 0 });
    const more = situation({ cart: { endpoints: [here('10.244.1.1')] } });
    expect(await driven.next(more)).toEqual({ status: 'applied', writes: 2 });
    expect(await driven.full(more)).toEqual({ status: 'applied', writes: 0 });
  },
);

test('a change that another process undoes each time is not learnt', async () => {
  const iptables = new FakeIptables();
  const driven = await Driven.open({ iptables });
  await driven.full(table);
  for (let round = 0; round < 4; round++) {
    const name = /:(KUBE-SVC-\w+)/.exec(driven.save())?.[1] ?? '';
    iptables.put('IPv4', 'nft', `*nat\n-F ${name}\nCOMMIT\n`);
    expect(await driven.full(table)).toEqual({ status: 'applied', writes: 1 });
  }
});
