import type { IptablesSave, IptablesTable } from './parse-save.ts';
import type { RemovalWish } from './plan-removal.ts';

/** Chains with one name, of every version and mode of kube-proxy; those from KUBE-NODE-PORT on are of its ipvs mode. */
const names: ReadonlySet<string> = new Set([
  'KUBE-SERVICES',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-NODEPORTS',
  'KUBE-POSTROUTING',
  'KUBE-MARK-MASQ',
  'KUBE-FORWARD',
  'KUBE-PROXY-FIREWALL',
  'KUBE-PROXY-CANARY',
  'KUBE-NODE-PORT',
  'KUBE-LOAD-BALANCER',
  'KUBE-SOURCE-RANGES-FIREWALL',
  'KUBE-IPVS-FILTER',
  'KUBE-IPVS-OUT-FILTER',
]);

/** Chains per Service port or endpoint. KUBE-XLB is of releases before 1.24. */
const perService = /^KUBE-(?:SVC|SVL|EXT|FW|SEP|XLB)-[A-Z2-7]{16}$/;

/** Whether a chain is that of one Service port or endpoint, of any version of kube-proxy. */
export function isServiceChain(chain: string): boolean {
  return perService.test(chain);
}

/** Not the kubelet's (KUBE-FIREWALL, KUBE-MARK-DROP, KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT). */
export function isKubeProxyChain(chain: string): boolean {
  return names.has(chain) || isServiceChain(chain);
}

/** Removes everything of kube-proxy. */
export const allOfKubeProxy: RemovalWish = { isUnwanted: isKubeProxyChain };

/** The same, except KUBE-FORWARD where the policy of FORWARD is DROP: it may be the only rule that lets masqueraded packets pass. */
export const allButForward: RemovalWish = {
  isUnwanted: isKubeProxyChain,
  keep: (chain: string, table: IptablesTable) =>
    chain === 'KUBE-FORWARD' && table.chains.get('FORWARD') === 'DROP'
      ? 'the policy of FORWARD is DROP, and it lets Service traffic pass'
      : undefined,
};

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
