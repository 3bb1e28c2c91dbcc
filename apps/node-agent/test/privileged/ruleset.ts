import type { LabNode } from '@switchyard/lab';

/** Every rule and element of a node but the heartbeats of the agent, whose age differs at every look. */
export async function rulesetOf(node: LabNode): Promise<string> {
  const { stdout } = await node.run('nft', ['list', 'ruleset']);
  return stdout.replaceAll(/^\t+elements = \{ "[-0-9: ]+" timeout 1000d expires \S+ \}\n/gm, '');
}
