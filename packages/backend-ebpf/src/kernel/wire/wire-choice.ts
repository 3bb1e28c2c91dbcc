import { HostError, messageOf } from '@switchyard/core';
import { type BpfProbe, probeBpf } from '@switchyard/native';
import type { EbpfHost } from '../host.ts';
import { missingAbilities, type Need } from '../missing-abilities.ts';
import { probeWire } from './probe-wire.ts';

/** Who forwards what comes from outside: programs or rules, and why, in words. */
export interface WireChoice {
  readonly kind: 'tc' | 'nftables';
  readonly why: string;
}

/** Whom to ask what the kernel can; tests have their own. */
export interface WireAbilities {
  /** Throws `NativeMissingError`. */
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

/**
 * Who forwards what comes from outside, as the host asks for it and the kernel can. Where only the host's own sockets are served,
 * rules have to be there for all pods, and so they are for the outside as well. Rejects with `HostError` where it cannot be found out.
 */
export async function chooseWire(
  host: WireHost,
  signal: AbortSignal,
  abilities: WireAbilities = linux,
): Promise<WireChoice> {
  const { northSouth, socketLb } = host;
  if (northSouth === 'nftables') return { kind: 'nftables', why: 'as asked for' };
  if (socketLb === 'host') return { kind: 'nftables', why: 'pods are served by rules' };
  if (northSouth === 'tc') return { kind: 'tc', why: 'as asked for' };
  const lacks = await lacksOf(signal, abilities);
  if (lacks.length > 0) return { kind: 'nftables', why: lacks.join('; ') };
  return { kind: 'tc', why: 'the kernel took the guard table and the program, and made an entry for it' };
}

/**
 * Why programs cannot forward what comes from outside although the host asks for nothing else. With `auto` there is no such reason, but
 * it is found out all the same, so that `chooseWire` need not wait for it.
 */
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

/** Asks `probe` once, however many ask at the same time; not what could not be found out. */
export function askedOnce(probe: WireAbilities['probeWire']): WireAbilities['probeWire'] {
  let known: Promise<readonly string[]> | undefined;
  return async (signal) => {
    if (known !== undefined) {
      try {
        return await known;
      } catch {
        signal.throwIfAborted(); // else: whoever asked gave up, or could not ask
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
