import { iptablesBackend } from '@switchyard/backend-iptables';
import { FakeIptables, tracePacket, traceReturning } from '@switchyard/backend-iptables/testing';
import { type Clock, HostError, ipFamilies, noopLogger, seconds, systemClock } from '@switchyard/core';
import { iptablesTraits } from '@switchyard/backend-iptables/traits';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import type { BackendHarness, FakeKernel } from '../../src/index.ts';
import { addressPattern } from './address-pattern.ts';
import { observationOf } from './observation-of.ts';

/** Options of the fake machine. */
export interface IptablesMachine {
  readonly variant: IptablesVariant;
  /** Its kernel has netfilter accounting. */
  readonly hasAccounting: boolean;
}

/** backend-iptables over its transactional fake. */
export function iptablesHarness(machine: IptablesMachine): BackendHarness {
  return { name: 'iptables', dataplane: iptablesTraits, createKernel: () => createKernel(machine) };
}

/** Retries at once. */
const clock: Clock = { ...systemClock, sleep: (_, signal) => Promise.resolve(signal.throwIfAborted()) };

function createKernel({ variant, hasAccounting }: IptablesMachine): FakeKernel {
  const fake = new FakeIptables();
  const packetCounters = hasAccounting
    ? fake.packetCounters
    : { ...fake.packetCounters, ensure: noAccounting, read: noAccounting };
  const host = { runner: fake, logger: noopLogger, variant, packetCounters, clock, ...settings };
  return {
    // Probes of a started agent are not transactions of the backend.
    open: async (ipFamily, signal) => {
      const { failures } = fake;
      fake.failures = { rate: 0, random: () => 1 };
      const backend = await iptablesBackend.open(host, ipFamily, signal);
      fake.failures = failures;
      return backend;
    },
    trace: (flow) => observationOf(tracePacket(fake, flow)),
    traceReturning: (flow, endpoint) => observationOf(traceReturning(fake, flow, endpoint)),
    injectFailures: (rate, random) => {
      fake.failures = { rate, random };
    },
    refuse: (address) => {
      fake.refusing = addressPattern(address);
    },
    isEmpty: () => isEmpty(fake),
  };
}

const settings = {
  masqueradeBit: 14,
  localhostNodePorts: true,
  tcpBeLiberal: false,
  syncPeriod: seconds(30),
} as const;

function noAccounting(): never {
  throw new HostError('fake.accounting', 'the fake kernel has no netfilter accounting');
}

/** KUBE-FIREWALL and what leads to it are the kubelet's as well, and stay. */
function isEmpty(fake: FakeIptables): boolean {
  const places = ipFamilies.flatMap((family) => (['nft', 'legacy'] as const).map((one) => [family, one] as const));
  const lines = places.flatMap(([family, variant]) => fake.save(family, variant).split('\n'));
  return lines.every((line) => !/^(?::\S+ -|-A) ?/.test(line) || line.includes('KUBE-FIREWALL'));
}
