import { iptablesBackend } from '@switchyard/backend-iptables';
import { FakeIptables } from '@switchyard/backend-iptables/testing';
import { noopLogger, seconds, systemClock } from '@switchyard/core';
import { allScenarios, runOnBackend } from '../src/index.ts';
import { seededRandom } from '../test/unit/seeded-random.ts';
const signal = new AbortController().signal;
const [id, fam] = process.argv.slice(2);
const sc = allScenarios('iptables').find((s) => s.id === id && s.ipFamily === fam)!;
const fake = new FakeIptables();
const clock = { ...systemClock, sleep: async () => undefined };
const host = {
  runner: fake,
  logger: noopLogger,
  variant: 'nft' as const,
  clock,
  packetCounters: fake.packetCounters,
  masqueradeBit: 14,
  localhostNodePorts: true,
  tcpBeLiberal: false,
  syncPeriod: seconds(30),
};
const harness = {
  name: 'x',
  dataplane: 'iptables' as const,
  createKernel: () => ({
    open: async (f: any, s: any) => {
      const x = fake.failures;
      fake.failures = { rate: 0, random: () => 1 };
      const b = await iptablesBackend.open(host, f, s);
      fake.failures = x;
      const inner = b.apply.bind(b);
      (b as any).apply = async (r: any, sg: any) => {
        const n = fake.restores.length;
        const o = await inner(r, sg);
        console.log(
          'APPLY',
          r.scope.kind,
          o,
          '\n' +
            fake.restores
              .slice(n)
              .map((x) => `--- exit ${x.exitCode}\n` + x.text)
              .join(''),
        );
        return o;
      };
      return b;
    },
    trace: () => ({ kind: 'pass' as const }),
    injectFailures: (rate: any, random: any) => {
      fake.failures = { rate, random };
    },
    refuse: () => undefined,
    isEmpty: () => true,
  }),
};
await runOnBackend(sc, harness as any, { failureRate: 0.1, random: seededRandom(`${sc.id} ${sc.ipFamily}`) }, signal);
console.log(fake.save(sc.ipFamily, 'nft'));
