import { iptablesBackend } from '@switchyard/backend-iptables';
import { FakeIptables } from '@switchyard/backend-iptables/testing';
import { noopLogger, seconds } from '@switchyard/core';
import { allScenarios, ScenarioTables, firstState } from '../src/index.ts';
const signal = new AbortController().signal;
const sc = allScenarios('iptables').find((s) => s.id === (process.argv[2] ?? 'restart'))!;
const fake = new FakeIptables();
const host = {
  runner: fake,
  logger: noopLogger,
  variant: 'nft' as const,
  packetCounters: fake.packetCounters,
  masqueradeBit: 14,
  localhostNodePorts: true,
  tcpBeLiberal: false,
  syncPeriod: seconds(30),
};
const table = new ScenarioTables(sc).update(firstState(sc)).get(sc.ipFamily)!;
const a = await iptablesBackend.open(host, sc.ipFamily, signal);
console.log(await a.apply({ table, scope: { kind: 'full' } }, signal));
const n = fake.restores.length;
const s1 = fake.save('IPv4', 'nft');
const b = await iptablesBackend.open(host, sc.ipFamily, signal);
console.log(await b.apply({ table, scope: { kind: 'full' } }, signal));
for (const r of fake.restores.slice(n)) console.log(r.exitCode, r.text);
console.log(s1);
