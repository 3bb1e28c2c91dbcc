import { ConfigError } from '@switchyard/core';
import { blocksOf, type PageBlock } from './blocks.ts';
import type { BlockPlan, PagePlan } from './page-plan.ts';

/** A block, and what is done with it. */
export interface PlannedBlock {
  readonly block: PageBlock;
  readonly plan: BlockPlan;
}

/** Values of the placeholders in substitutions. */
export type PlaceValues = Readonly<
  Record<'cluster' | 'image' | 'folder' | 'worker' | 'controller' | 'imageFlags' | 'apiFlags', string>
>;

/**
 * The blocks of a page in the order of its plan. Throws `ConfigError` with page and line for a block that the plan does not know, an entry that
 * no block fits, and one that several fit.
 */
export function planPage({ page, blocks: plans }: PagePlan, text: string): readonly PlannedBlock[] {
  const blocks = blocksOf(page, text);
  const planned = plans.map((plan) => {
    const [block, another] = blocks.filter(({ text: commands }) => commands.startsWith(plan.begins));
    if (block === undefined) throw wrong(`${page} has no block that begins with ${JSON.stringify(plan.begins)}`);
    if (another !== undefined)
      throw wrong(`${page}:${block.line} and :${another.line} both begin with ${JSON.stringify(plan.begins)}`);
    return { block, plan };
  });
  const unknown = blocks.find((block) => !planned.some((one) => one.block === block));
  if (unknown !== undefined) throw wrong(`${page}:${unknown.line}: no entry is for this block`);
  return planned;
}

/** The commands of a block as they are run. Throws `ConfigError` for a substitution whose text the block does not have. */
export function commandsOf({ block, plan }: PlannedBlock, values: PlaceValues): string {
  const filled = (text: string): string =>
    text.replaceAll(/\{(\w+)\}/g, (whole, name: string) =>
      name in values ? values[name as keyof PlaceValues] : whole,
    );
  const replace = plan.kind === 'run' ? (plan.replace ?? []) : [];
  return replace.reduce((text, [from, to]) => {
    if (text.includes(from)) return text.replaceAll(from, filled(to));
    throw wrong(
      `${block.page}:${block.line}: a substitution is for ${JSON.stringify(from)}, which the block does not have`,
    );
  }, block.text);
}

function wrong(what: string): ConfigError {
  return new ConfigError('e2e.page', `${what}; correct e2e/src/pages/page-plan.ts`);
}
