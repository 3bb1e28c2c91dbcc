import { isKubeProxyChain } from './kube-proxy-chains.ts';
import type { IptablesSave } from './parse-save.ts';
import type { RemovalWish } from './plan-removal.ts';

/** The chain, in mangle, that says that chains with kube-proxy's names are this agent's. */
export const birthmarkChain = 'SWITCHYARD';

/** Whether this agent wrote what is there, or took it over. */
export function isBirthmarked({ tables }: IptablesSave): boolean {
  return tables.some(({ chains }) => chains.has(birthmarkChain));
}

/** Whether a chain is one that this agent alone writes, as long as no kube-proxy runs: the birthmark, and all with kube-proxy's names. */
export function isOurChain(chain: string): boolean {
  return chain === birthmarkChain || isKubeProxyChain(chain);
}

/** Everything that this agent writes goes. */
export const allOfOurs: RemovalWish = { isUnwanted: isOurChain };

/** Nothing is to go. */
export const nothingUnwanted: RemovalWish = { isUnwanted: () => false };

/** Everything that this agent writes goes where its birthmark is; elsewhere such chains are a kube-proxy's, and stay. */
export function ifBirthmarked(save: IptablesSave): RemovalWish {
  return isBirthmarked(save) ? allOfOurs : nothingUnwanted;
}
