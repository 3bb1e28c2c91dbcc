import { isOurChain } from '@switchyard/netfilter/iptables';
import { type RuleText, type TableName, tableNames } from '../render/chains.ts';
import type { IptablesClient } from './client/iptables-client.ts';
import { isTargetOfOurs } from './our-chains.ts';
import { chainNames } from '../render/names.ts';

/** Chains whose rules have no fixed order, except for the last ones. */
const shared: ReadonlySet<string> = new Set([
  chainNames.services,
  chainNames.externalServices,
  chainNames.nodePorts,
  chainNames.proxyFirewall,
]);

/** Our rules as `iptables-save` prints them, sorted, without the heartbeat time; of foreign chains only jumps to ours. */
export async function dumpRules(client: IptablesClient, signal: AbortSignal): Promise<string> {
  let text = '';
  for (const table of tableNames) text += await dumpTable(client, table, signal);
  return text;
}

async function dumpTable(client: IptablesClient, table: TableName, signal: AbortSignal): Promise<string> {
  const rulesByChain = new Map<string, RuleText[]>();
  const reader = {
    chain: (name: string): void => void rulesByChain.set(name, []),
    rule: (chain: string, rule: RuleText): void => void rulesByChain.get(chain)?.push(rule),
  };
  await client.read(table, reader, signal);
  const names = [...rulesByChain.keys()].toSorted();
  const declared = names.filter(isOurChain).map((name) => `:${name} -\n`);
  const rules = names.flatMap((name) => printed(name, rulesByChain.get(name) ?? []));
  // Without chains of the agent, rules that lead to the kubelet's chain are the kubelet's own.
  if (declared.length === 0) return '';
  return `*${table}\n${declared.join('')}${rules.join('')}COMMIT\n`;
}

function printed(name: string, rules: readonly RuleText[]): readonly string[] {
  return shownRules(name, rules).map((rule) => `-A ${name} ${rule}\n`);
}

function shownRules(name: string, rules: readonly RuleText[]): readonly RuleText[] {
  if (name === chainNames.mark) return rules.map((rule) => rule.replace(/ \d+"$/, ' -"'));
  if (!isOurChain(name)) return rules.filter((rule) => isTarget(rule));
  if (!shared.has(name)) return rules;
  const last = rules.filter(leadsToNodePorts);
  return [...rules.filter((rule) => !leadsToNodePorts(rule)).toSorted(), ...last];
}

function leadsToNodePorts(rule: RuleText): boolean {
  return rule.endsWith(` -j ${chainNames.nodePorts}`);
}

function isTarget(rule: RuleText): boolean {
  const target = /-j (\S+)$/.exec(rule)?.[1];
  return target !== undefined && isTargetOfOurs(target);
}
