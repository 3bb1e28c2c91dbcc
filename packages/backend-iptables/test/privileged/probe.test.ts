import { ipFamilies, noopLogger } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { createPacketCounters } from '@switchyard/netfilter';
import { findIptables, type IptablesPrograms } from '@switchyard/netfilter/iptables';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { missingFeatures, probeHost, ruleFeatures } from '../../src/kernel/probe.ts';
import { openIptables } from '../../src/kernel/facts.ts';
import { createNamespace, signal, type TestNamespace, variant } from './support.ts';

let namespace: TestNamespace;
beforeAll(async () => {
  namespace = await createNamespace();
});
afterAll(() => namespace[Symbol.asyncDispose]());

const without = (rights: string): CommandRunner => ({
  run: (file, args, options) =>
    namespace.runner.run('setpriv', [`--bounding-set=${rights}`, '--', file, ...args], options),
});

describe('the probe', () => {
  test('finds this machine usable in both families, and every feature', async () => {
    const { runner } = namespace;
    expect(await probeHost({ runner, variant, ipFamilies }, signal)).toMatchObject({
      status: 'usable',
      variant,
      ipFamilies,
      reasons: [],
    });
    for (const ipFamily of ipFamilies) {
      const programs = await findIptables(runner, { ipFamily, variant }, signal);
      expect(await missingFeatures(runner, programs as IptablesPrograms, ruleFeatures(ipFamily), signal)).toEqual([]);
    }
  });

  test('writes nothing where it runs', async () => {
    await probeHost({ runner: namespace.runner, variant, ipFamilies }, signal);
    expect(await namespace.run('nft list ruleset')).toBe('');
    expect(await namespace.run('cat /proc/net/ip_tables_names /proc/net/ip6_tables_names')).toBe('');
  });

  test('names what is missing, with the versions there are', async () => {
    const programs = await findIptables(namespace.runner, { ipFamily: 'IPv4', variant }, signal);
    const impossible = {
      name: 'marks of tomorrow',
      modules: 'xt_tomorrow',
      table: 'nat',
      rule: '-m tomorrow -j RETURN',
    } as const;
    const features = [...ruleFeatures('IPv4'), impossible];
    const [missing, ...others] = await missingFeatures(
      namespace.runner,
      programs as IptablesPrograms,
      features,
      signal,
    );
    expect(missing).toMatch(
      new RegExp(
        `^missing: marks of tomorrow \\(xt_tomorrow\\); this is Linux \\d\\S* with iptables-${variant} 1\\.8\\.\\d+$`,
      ),
    );
    expect(others).toEqual([]);
  });

  test.each([['CAP_NET_ADMIN', '-net_admin'], ...(variant === 'legacy' ? [['CAP_NET_RAW', '-net_raw']] : [])])(
    'says so without %s',
    async (_, rights = '') => {
      const result = await probeHost({ runner: without(rights), variant, ipFamilies: ['IPv4'] }, signal);
      const right = 'run with CAP_NET_ADMIN, for the legacy variant with CAP_NET_RAW too';
      expect(result).toEqual({
        status: 'unusable',
        reasons: [`iptables-${variant} may not change the rules: ${right}`],
      });
    },
  );

  test('does with the rights to write rules alone, where no namespace can be made', async () => {
    const result = await probeHost({ runner: without('-sys_admin'), variant, ipFamilies: ['IPv4'] }, signal);
    expect(result).toMatchObject({ status: 'usable', ipFamilies: ['IPv4'] });
  });
});

describe('opening iptables', () => {
  const shown = (name: TestNamespace): Promise<string> =>
    name.run('nft list ruleset').then(async (rules) => {
      return `${rules}${await name.run('cat /proc/net/ip_tables_names /proc/net/ip6_tables_names')}`;
    });

  test('writes nothing; packet counters are made before rules are written', async () => {
    await using fresh = await createNamespace();
    const { runner, path: netns } = fresh;
    const opened = await openIptables({ runner, variant, netns, logger: noopLogger }, 'IPv4', signal);
    const { facts, client, prepare } = opened;
    expect(facts).toEqual({ variant, version: client.version, randomFully: true, nfacct: true });
    const counters = createPacketCounters({ netns });
    expect([await shown(fresh), ...counters.read().keys()]).toEqual(['']);
    prepare();
    expect([...counters.read().keys()].sort()).toEqual([
      'ct_state_invalid_dropped_pkts',
      'localhost_nps_accepted_pkts',
    ]);
    const rule = '-A FORWARD -m nfacct --nfacct-name ct_state_invalid_dropped_pkts';
    expect(await client.restore(`*filter\n${rule}\nCOMMIT\n`, signal)).toEqual({ status: 'done' });
  });

  test('finds the same where no namespace can be made', async () => {
    await using fresh = await createNamespace();
    const runner: CommandRunner = {
      run: (file, args, options) =>
        fresh.runner.run('setpriv', ['--bounding-set=-sys_admin', '--', file, ...args], options),
    };
    const host = { runner, variant, netns: fresh.path, logger: noopLogger };
    expect((await openIptables(host, 'IPv4', signal)).facts.nfacct).toBe(true);
    expect(await fresh.run(`iptables-${variant}-save`)).not.toContain('SWITCHYARD');
    if (variant === 'nft') expect(await shown(fresh)).toBe('');
  });
});
