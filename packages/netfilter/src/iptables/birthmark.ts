import { isKubeProxyChain } from './kube-proxy-chains.ts';
import type { IptablesSave } from './parse-save.ts';
import type { RemovalWish } from './plan-removal.ts';

/** The chain in mangle that marks chains with kube-proxy's names as this agent's. */
export const birthmarkChain = 'SWITCHYARD';

/** Whether this agent wrote or adopted the rules. */
export function isBirthmarked({ tables }: IptablesSave): boolean {
  return tables.some(({ chains }) => chains.has(birthmarkChain));
}

/** Whether only this agent writes a chain while no kube-proxy runs: the birthmark, and all chains with kube-proxy's names. */
export function isOurChain(chain: string): boolean {
  return chain === birthmarkChain || isKubeProxyChain(chain);
}

/** Removes everything that this agent writes. */
export const allOfOurs: RemovalWish = { isUnwanted: isOurChain };

/** Removes nothing. */
export const nothingUnwanted: RemovalWish = { isUnwanted: () => false };

/** Removes everything that this agent writes, where its birthmark exists. Elsewhere such chains belong to a kube-proxy and stay. */
export function ifBirthmarked(save: IptablesSave): RemovalWish {
  return isBirthmarked(save) ? allOfOurs : nothingUnwanted;
}
