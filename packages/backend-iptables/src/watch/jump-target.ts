import { readAttributes, readText } from '@switchyard/native';
import type { ByteRange } from '@switchyard/netfilter';

/** Numbers of linux/netfilter/nf_tables.h: where in a rule its verdict stands. */
const attribute = {
  ruleExpressions: 4,
  listElement: 1,
  expressionName: 1,
  expressionData: 2,
  immediateData: 2,
  dataVerdict: 2,
  verdictChain: 2,
} as const;

/** The way from the attributes of a rule to those of an immediate expression's verdict. */
const toVerdict: readonly number[] = [attribute.immediateData, attribute.dataVerdict, attribute.verdictChain];

/** The chain that a rule of a notice jumps or goes to; undefined for none. The range is that of its attributes. */
export function jumpTarget(bytes: Uint8Array, rule: ByteRange): string | undefined {
  const expressions = find(bytes, rule, attribute.ruleExpressions);
  if (expressions === undefined) return undefined;
  for (const expression of readAttributes(bytes, expressions.start, expressions.end)) {
    const target = expression.type === attribute.listElement ? verdictChain(bytes, expression) : undefined;
    if (target !== undefined) return target;
  }
  return undefined;
}

function verdictChain(bytes: Uint8Array, expression: ByteRange): string | undefined {
  const name = find(bytes, expression, attribute.expressionName);
  if (name === undefined || readText(bytes, name.start, name.end) !== 'immediate') return undefined;
  let at = find(bytes, expression, attribute.expressionData);
  for (const step of toVerdict) at = at && find(bytes, at, step);
  return at && readText(bytes, at.start, at.end);
}

function find(bytes: Uint8Array, { start, end }: ByteRange, type: number): ByteRange | undefined {
  return readAttributes(bytes, start, end).find((one) => one.type === type);
}
