import { createHash } from 'node:crypto';
import type { DumpedElement, DumpedObject, DumpedRule, TableDump } from '@switchyard/netfilter';

/** Digest of one rule, chain, set or class of our table: 16 hexadecimal digits. */
export type RuleMark = string;

export interface DumpedClass {
  readonly map: string;
  readonly element: DumpedElement;
}

/** Input of marks: a whole table, or a part without `flags`. */
export interface MarkedRules extends Omit<TableDump, 'flags'> {
  readonly flags?: number;
  readonly classes: readonly DumpedClass[];
}

/** Foreign objects in our table. None affects our rules, so all can be deleted. */
export interface ForeignObjects {
  readonly rules: readonly DumpedRule[];
  readonly chains: readonly string[];
  readonly sets: readonly string[];
}

/** `intact`: as loaded, but for foreign objects. `damaged`: an object is missing, changed or in another order. */
export type RulesVerdict =
  | { readonly kind: 'intact'; readonly foreign: ForeignObjects }
  | { readonly kind: 'damaged'; readonly missing: number; readonly what: readonly string[] };

/** The marks of everything there is: right after a load, of everything there should be. */
export function marksOf(rules: MarkedRules): ReadonlySet<RuleMark> {
  return new Set(items(rules, () => true).map(({ mark }) => mark));
}

export function compareRules(rules: MarkedRules, marks: ReadonlySet<RuleMark>): RulesVerdict {
  const found = new Set<RuleMark>();
  const foreign = { rules: [] as DumpedRule[], chains: [] as string[], sets: [] as string[] };
  const what: string[] = [];
  let isHeavy = false;
  for (const item of items(rules, (mark) => marks.has(mark))) {
    if (marks.has(item.mark)) {
      found.add(item.mark);
      continue;
    }
    what.push(item.text);
    switch (item.kind) {
      case 'rule':
        foreign.rules.push(item.rule);
        break;
      case 'chain':
        foreign.chains.push(item.name);
        break;
      case 'set':
        foreign.sets.push(item.name);
        break;
      default: // a table that sleeps, a class that leads elsewhere: packets are already affected
        isHeavy = true;
    }
  }
  const missing = marks.size - found.size;
  const isHalfMade = foreign.chains.some((name) => runTimeChain.test(name));
  if (missing > 0 || isHeavy || isHalfMade) return { kind: 'damaged', missing, what };
  return { kind: 'intact', foreign };
}

/** Chains that are made at run time: without a mark the process died before it was written, and packets may use them. */
const runTimeChain = /^(?:lb|aff)[46]-/;

type Item = { readonly mark: RuleMark; readonly text: string } & (
  | { readonly kind: 'rule'; readonly rule: DumpedRule }
  | { readonly kind: 'chain' | 'set'; readonly name: string }
  | { readonly kind: 'table' | 'class' }
);

/** Everything with its mark. A rule's mark has its place among rules that fit: foreign rules do not move them. */
function* items(rules: MarkedRules, fits: (mark: RuleMark) => boolean): Generator<Item, undefined, unknown> {
  const { flags } = rules;
  if (flags !== undefined) {
    yield { kind: 'table', mark: markOf('table', String(flags)), text: `table with flags ${flags}` };
  }
  for (const { name, settings } of rules.chains) {
    yield { kind: 'chain', name, mark: markOf('chain', name, bytesOf(settings)), text: `chain ${name}` };
  }
  for (const { name, settings } of rules.sets) {
    yield { kind: 'set', name, mark: markOf('set', name, bytesOf(settings)), text: `set or map ${name}` };
  }
  for (const { map, element } of rules.classes) {
    const mark = markOf('class', map, element.key, element.data);
    yield { kind: 'class', mark, text: `class in ${map}` };
  }
  const places = new Map<string, number>();
  for (const rule of rules.rules) {
    const place = places.get(rule.chain) ?? 0;
    const mark = markOf('rule', rule.chain, String(place), rule.expressions);
    if (fits(mark)) places.set(rule.chain, place + 1);
    yield { kind: 'rule', rule, mark, text: `rule of chain ${rule.chain}` };
  }
  return undefined;
}

function bytesOf(settings: DumpedObject['settings']): Uint8Array {
  return Buffer.concat(settings.flatMap(([type, value]) => [Uint8Array.of(type), value]));
}

function markOf(kind: string, name: string, ...parts: readonly (string | Uint8Array)[]): RuleMark {
  const hash = createHash('sha256').update(`${kind}\0${name}\0`);
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex').slice(0, 16);
}
