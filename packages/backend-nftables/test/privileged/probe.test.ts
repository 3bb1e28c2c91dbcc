import { release } from 'node:os';
import { createLab, type Lab } from '@switchyard/lab';
import { deleteTable, listTables } from '@switchyard/netfilter';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TableWriter } from '../../src/kernel/netlink/table-writer.ts';
import { missingFeatures, openRuleTrial, probeHost, type RuleTrial } from '../../src/kernel/probe.ts';
import { type RuleFeature, ruleFeatures } from '../../src/render/rule-features.ts';
import { NftError } from '../../src/kernel/nft-error.ts';
import { signal } from './support.ts';

let lab: Lab;
let netns: string;

beforeAll(async () => {
  lab = await createLab({ name: 'nftp', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  netns = `/run/netns/${lab.nodes[0]!.namespace}`;
});

afterAll(() => lab[Symbol.asyncDispose]());

/** Refused by every kernel: nothing of that name is there to lead to. */
const impossible: RuleFeature = {
  name: 'chains that are not there',
  since: 'no Linux',
  items: [{ kind: 'chain', name: 'c', rules: [[{ kind: 'goto', chain: 'nowhere' }]] }],
};

/** As where no namespace can be made: checked where it would be used. */
async function openCheck(): Promise<RuleTrial> {
  const writer = new TableWriter({ netns });
  return {
    refusal: (table) => {
      try {
        writer.check({ attempt: 'cannot make a table', table });
        return undefined;
      } catch (error) {
        if (error instanceof NftError) return error;
        throw error;
      }
    },
    [Symbol.dispose]: () => writer[Symbol.dispose](),
  };
}

describe.each([
  ['a namespace of its own', () => openRuleTrial(undefined, signal)],
  ['a transaction that is not committed', openCheck],
])('in %s', (_, openTrial) => {
  test('this machine can run the rules, and has every feature of which they are made', async () => {
    expect(await probeHost({ netns, openTrial }, signal)).toMatchObject({ status: 'usable' });
    using trial = await openTrial();
    expect(missingFeatures(trial, ruleFeatures, release())).toEqual([]);
    expect(listTables('inet', netns)).toEqual([]);
    expect(listTables('inet').filter((name) => name.includes('probe'))).toEqual([]);
  });

  test('what the kernel refuses is named, with its release and its answer', async () => {
    using trial = await openTrial();
    const [missing, ...others] = missingFeatures(trial, [...ruleFeatures, impossible], release());
    expect(missing).toContain(`missing: chains that are not there; needs no Linux, this is Linux ${release()}: `);
    expect(missing).toContain('the kernel answered ENOENT');
    expect(others).toEqual([]);
  });
});

test('tables of any owner are listed and deleted by name', () => {
  using writer = new TableWriter({ netns });
  writer.load({ attempt: 'cannot try', table: { name: 'theirs', comment: '', items: [] }, mode: 'create' });
  expect(listTables('inet', netns)).toEqual(['theirs']);
  expect(listTables('ip', netns)).toEqual([]);
  expect(deleteTable({ family: 'ip', table: 'theirs', netns })).toBe(false);
  expect(deleteTable({ family: 'inet', table: 'theirs', netns })).toBe(true);
  expect(deleteTable({ family: 'inet', table: 'theirs', netns })).toBe(false);
});
