import { isKubeProxyChain } from './kube-proxy-chains.ts';
import type { IptablesSave } from './parse-save.ts';
import type { RemovalWish } from './plan-removal.ts';

/** The chain, in mangle, that says that chains with kube-proxy's names are this agent's. */
export const birthmarkChain = 'SWITCHYARD';

/** Whether this agent wrote what is there, or took it over. */
export function isBirthmarked({ tables }: IptablesSave): boolean {
  return tables.some(({ chains }) => chains.has(birthmarkChain));
}

/** Everything that this agent writes goes: the birthmark, and all with kube-proxy's names. */
export const allOfOurs: RemovalWish = {
  isUnwanted: (chain: string) => chain === birthmarkChain || isKubeProxyChain(chain),
};

/** Nothing is to go. */
export const nothingUnwanted: RemovalWish = { isUnwanted: () => false };

/** Everything that this agent writes goes where its birthmark is; elsewhere such chains are a kube-proxy's, and stay. */
export function ifBirthmarked(save: IptablesSave): RemovalWish {
  return isBirthmarked(save) ? allOfOurs : nothingUnwanted;
}
