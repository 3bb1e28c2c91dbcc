import { readAttributes, readText } from '@switchyard/native';
import { type ByteRange, NFTA } from '@switchyard/netfilter';

/** The way from the attributes of an immediate expression to those of its verdict. */
const toVerdict: readonly number[] = [NFTA.EXPR.DATA, NFTA.IMMEDIATE.DATA, NFTA.DATA.VERDICT, NFTA.VERDICT.CHAIN];

/** The chain that a rule of a notice jumps or goes to; undefined for none. The range is that of its attributes. */
export function jumpTarget(bytes: Uint8Array, rule: ByteRange): string | undefined {
  const expressions = find(bytes, rule, NFTA.RULE.EXPRESSIONS);
  if (expressions === undefined) return undefined;
  for (const expression of readAttributes(bytes, expressions.start, expressions.end)) {
    const target = expression.type === NFTA.LIST.ELEM ? verdictChain(bytes, expression) : undefined;
    if (target !== undefined) return target;
  }
  return undefined;
}

function verdictChain(bytes: Uint8Array, expression: ByteRange): string | undefined {
  const name = find(bytes, expression, NFTA.EXPR.NAME);
  if (name === undefined || readText(bytes, name.start, name.end) !== 'immediate') return undefined;
  let at: ByteRange | undefined = expression;
  for (const step of toVerdict) at = at && find(bytes, at, step);
  return at && readText(bytes, at.start, at.end);
}

function find(bytes: Uint8Array, { start, end }: ByteRange, type: number): ByteRange | undefined {
  return readAttributes(bytes, start, end).find((one) => one.type === type);
}
