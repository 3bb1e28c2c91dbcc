import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCommandRunner } from '@switchyard/host';
import { createLab, type Lab } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { missingFeatures, probeHost } from '../../src/probe.ts';
import { ruleFeatures } from '../../src/rule-features.ts';
import { signal, transport } from './support.ts';

const runner = createCommandRunner();
let lab: Lab;

beforeAll(async () => {
  lab = await createLab({ name: 'nftp', nodes: 1, ipFamilies: ['IPv4'] }, signal);
});

afterAll(() => lab[Symbol.asyncDispose]());

test('this machine can run the rules, and has every feature of which they are made', async () => {
  expect(await probeHost({ runner, transport }, signal)).toMatchObject({ status: 'usable' });
  expect(await missingFeatures(runner, ruleFeatures, signal)).toEqual([]);
});

test('what the kernel refuses is named, with the versions there are', async () => {
  const impossible = {
    name: 'NAT at ingress',
    since: 'no Linux',
    rules: 'chain c { type nat hook ingress device lo priority 0; }',
  };
  const [missing, ...others] = await missingFeatures(runner, [...ruleFeatures, impossible], signal);
  expect(missing).toMatch(
    /^missing: NAT at ingress; needs no Linux, this is Linux \d+\.\d+\S* with nft \d+\.\d+\.\d+$/,
  );
  expect(others).toEqual([]);
});

test('an nft that is too old is refused by its version, before it is used', async () => {
  const program = join(lab.folder, 'nft');
  await writeFile(program, '#!/bin/sh\n[ "$*" = --version ] && echo "nftables v0.9.8 (E.D.S.)" && exit 0\nexit 99\n');
  await chmod(program, 0o755);
  const old = {
    run: (file: string, args: readonly string[], options: Parameters<typeof runner.run>[2]) =>
      runner.run(file === 'nft' ? program : file, args, options),
  };
  expect(await probeHost({ runner: old, transport }, signal)).toEqual({
    status: 'unusable',
    reasons: ['nft 0.9.8 is too old; 1.0.1 or newer is needed'],
  });
});
