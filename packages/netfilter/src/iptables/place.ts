import type { IpFamily } from '@switchyard/core';

/** Which of the kernel's two iptables a program uses. A machine may have rules in both. */
export type IptablesVariant = 'nft' | 'legacy';

/** IP family and variant of rules. */
export interface IptablesPlace {
  readonly ipFamily: IpFamily;
  readonly variant: IptablesVariant;
}

/** Every place there can be in these families. */
export function iptablesPlaces(ipFamilies: readonly IpFamily[]): readonly IptablesPlace[] {
  return ipFamilies.flatMap((ipFamily) => (['nft', 'legacy'] as const).map((variant) => ({ ipFamily, variant })));
}

/** Usual name of a place, such as `ip6tables-legacy`: the name of its program on most machines. */
export function iptablesName({ ipFamily, variant }: IptablesPlace): string {
  return `${plainName(ipFamily)}-${variant}`;
}

/** `iptables` or `ip6tables`: the program of whichever variant the machine was set up with. */
export function plainName(ipFamily: IpFamily): string {
  return ipFamily === 'IPv4' ? 'iptables' : 'ip6tables';
}
