import type { BpfAbilityName, BpfProbe } from '@switchyard/native';

const abilityNames: readonly BpfAbilityName[] = [
  'maps',
  'mmap',
  'socketHooks',
  'getpeername',
  'netnsCookie',
  'tc',
  'conntrackNat',
];

/** Probe result of a kernel without these abilities. */
export function kernelWithout(...missing: readonly BpfAbilityName[]): BpfProbe {
  const ability = (name: BpfAbilityName): BpfProbe['abilities'][BpfAbilityName] =>
    missing.includes(name) ? { status: 'unusable', reason: 'bpf failed with EPERM' } : { status: 'usable' };
  const abilities = Object.fromEntries(abilityNames.map((name) => [name, ability(name)])) as BpfProbe['abilities'];
  return { abilities, cgroup2: '/sys/fs/cgroup' };
}
