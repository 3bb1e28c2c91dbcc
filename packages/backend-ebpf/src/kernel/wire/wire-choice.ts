import { HostError, messageOf } from '@switchyard/core';
import { type BpfProbe, probeBpf } from '@switchyard/native';
import type { EbpfHost } from '../host.ts';
import { missingAbilities, type Need } from '../probe.ts';
import { probeWire } from './probe-wire.ts';

export interface WireChoice {
  readonly kind: 'tc' | 'nftables';
  readonly why: string;
}

/** Probes of the kernel; tests have their own. */
export interface WireAbilities {
  probe(): BpfProbe;
  /** As `probeWire`. */
  probeWire(signal: AbortSignal): Promise<readonly string[]>;
}

type WireHost = Pick<EbpfHost, 'northSouth' | 'socketLb'>;

const wireNeeds: readonly Need[] = [
  ['tc', 'BPF programs at network interfaces (CONFIG_NET_CLS_BPF)'],
  [
    'conntrackNat',
    'connection tracking for BPF programs (Linux 6.1.2, CONFIG_DEBUG_INFO_BTF and CONFIG_DEBUG_INFO_BTF_MODULES)',
  ],
];
const instead = 'use --switchyard-ebpf-north-south=auto or nftables';

/** Programs or rules, by settings and abilities; rules where they serve pods. Rejects with `HostError`. */
export async function chooseWire(
  host: WireHost,
  signal: AbortSignal,
  abilities: WireAbilities = linux,
): Promise<WireChoice> {
  const { northSouth, socketLb } = host;
  if (northSouth === 'nftables') return { kind: 'nftables', why: 'as configured' };
  if (socketLb === 'host') return { kind: 'nftables', why: 'pods are served by rules' };
  if (northSouth === 'tc') return { kind: 'tc', why: 'as configured' };
  const lacks = await lacksOf(signal, abilities);
  if (lacks.length > 0) return { kind: 'nftables', why: lacks.join('; ') };
  return { kind: 'tc', why: 'the kernel took the guard table and the program, and made an entry for it' };
}

/** Why programs cannot forward as required. Probes with `auto` too, so that `chooseWire` does not wait. */
export async function wireFaults(
  { northSouth, socketLb }: WireHost,
  signal: AbortSignal,
  abilities: WireAbilities = linux,
): Promise<readonly string[]> {
  if (northSouth === 'nftables') return [];
  const isAsked = northSouth === 'tc';
  if (socketLb === 'host') {
    const text = `--switchyard-ebpf-socket-lb=host leaves pods to rules, which tc does not have: ${instead}`;
    return isAsked ? [text] : [];
  }
  try {
    const lacks = await lacksOf(signal, abilities);
    return isAsked ? lacks.map((text) => `${text}: ${instead}`) : [];
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof HostError)) throw error;
    return isAsked ? [messageOf(error)] : [];
  }
}

async function lacksOf(signal: AbortSignal, abilities: WireAbilities): Promise<readonly string[]> {
  const lacks = missingAbilities(wireNeeds, abilities.probe());
  return lacks.length > 0 ? lacks : abilities.probeWire(signal);
}

/** Runs `probe` once for all callers and keeps its result. A probe that fails runs again for the next caller. */
export function askedOnce(probe: WireAbilities['probeWire']): WireAbilities['probeWire'] {
  let known: Promise<readonly string[]> | undefined;
  return async (signal) => {
    if (known !== undefined) {
      try {
        return await known;
      } catch {
        signal.throwIfAborted(); // else: the other caller was aborted, or its probe failed
      }
    }
    const answer = probe(signal);
    known = answer;
    try {
      return await answer;
    } catch (error) {
      if (known === answer) known = undefined;
      throw error;
    }
  };
}

const linux: WireAbilities = {
  probe: probeBpf,
  probeWire: askedOnce((signal) => probeWire({}, signal)),
};
