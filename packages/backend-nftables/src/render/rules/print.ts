import { assertNever } from '@switchyard/core';
import { hex } from '../elements.ts';
import {
  type ChainDescription,
  type HookDescription,
  type ObjectDescription,
  type PartType,
  type Rule,
  type Statement,
  type TableItem,
  type VerdictElement,
} from './model.ts';

/** The lines of a map, set or chain. The digest of our rules is made of them: other text is another version. */
export function printItem(item: TableItem): readonly string[] {
  return item.kind === 'chain' ? printChain(item) : [printObject(item)];
}

export function verdictsOf({ elements = [] }: ObjectDescription): readonly VerdictElement[] {
  return elements.filter((element) => typeof element !== 'number');
}

export function numbersOf({ elements = [] }: ObjectDescription): readonly number[] {
  return elements.filter((element) => typeof element === 'number');
}

export function printVerdicts(elements: readonly VerdictElement[]): string {
  return elements.map(({ key, chain }) => `${hex(key)} : goto ${chain}`).join(', ');
}

function printObject(object: ObjectDescription): string {
  const { kind, name, declared = 'typeof', key, data = [], size, flags, counter, gcIntervalHours, comment } = object;
  const numbers = numbersOf(object);
  const parts = [
    `${declared} ${key.join(' . ')}${data.length === 0 ? '' : ` : ${data.join(' . ')}`};`,
    ...(size === undefined ? [] : [`size ${size};`]),
    ...(flags === undefined ? [] : [`flags ${flags.join(',')};`]),
    ...(counter === true ? ['counter;'] : []),
    ...(gcIntervalHours === undefined ? [] : [`gc-interval ${gcIntervalHours}h;`]),
    ...(comment === undefined ? [] : [`comment "${comment}";`]),
    ...(numbers.length === 0 ? [] : [`elements = { ${numbers.map(hex).join(', ')} }`]),
  ];
  return `${kind} ${name} { ${parts.join(' ')} }`;
}

function printChain({ name, hook, rules, isOneLine = false }: ChainDescription): readonly string[] {
  const lines = rules.map(printRule);
  if (isOneLine) {
    const statements = [...(hook === undefined ? [] : [printHook(hook)]), ...lines.map((line) => `${line};`)];
    return [`chain ${name} { ${statements.join(' ')} }`];
  }
  const body = [...lines.map((line) => `  ${line}`), '}'];
  if (hook?.policy !== undefined) return [`chain ${name} {`, `  ${printHook(hook)}`, ...body];
  return [`chain ${name} {${hook === undefined ? '' : ` ${printHook(hook)}`}`, ...body];
}

function printHook({ type, at, priority, policy }: HookDescription): string {
  const where = `type ${type} hook ${at} priority ${priority};`;
  return policy === undefined ? where : `${where} policy ${policy};`;
}

export function printRule(rule: Rule): string {
  return rule.map(printStatement).join(' ');
}

function printStatement(statement: Statement): string {
  switch (statement.kind) {
    case 'isFamily':
      return `meta nfproto ${statement.isNegated === true ? '!= ' : ''}${statement.family}`;
    case 'isProtocol':
      return `meta l4proto ${printProtocols(statement.protocols)}`;
    case 'isLocal':
      return `fib ${statement.address} type local`;
    case 'isDnat':
      return statement.isNegated === true ? 'ct status and dnat == 0' : 'ct status dnat';
    case 'isState':
      return `ct state ${statement.state}`;
    case 'inSet':
      return `${printParts(statement.fields)} ${statement.isNegated === true ? '!= ' : ''}@${statement.set}`;
    case 'isNot':
      return `${statement.field} != ${statement.cidr}`;
    case 'hasBits':
      return `meta ${statement.of} and ${hex(statement.mask)} ${statement.isNegated === true ? '==' : '!='} 0`;
    case 'vmap':
      return `meta priority and ${hex(statement.mask)} vmap ${printMap(statement.map)}`;
    case 'goto':
      return `goto ${statement.chain}`;
    case 'drop':
    case 'accept':
      return statement.kind;
    case 'reject':
      return statement.with === 'any' ? 'reject' : `reject with ${statement.with}`;
    default:
      return printChange(statement);
  }
}

type Changing = Extract<
  Statement,
  { kind: 'setPriority' | 'maskPriority' | 'lookUpPriority' | 'setMark' | 'dnat' | 'count' | 'masquerade' }
>;

function printChange(statement: Changing): string {
  switch (statement.kind) {
    case 'setPriority':
      return `meta priority set ${(statement.value >>> 16).toString(16)}:${(statement.value & 0xffff).toString(16)}`;
    case 'maskPriority':
      return `meta priority set meta priority and ${hex(statement.mask)}`;
    case 'lookUpPriority':
      return `meta priority set ${printParts(statement.fields)} map @${statement.map}`;
    case 'setMark':
      return `meta mark set meta mark ${statement.operation} ${hex(statement.value)}`;
    case 'dnat':
      return `dnat ${statement.ip} addr . port to ${printParts(statement.fields)} map @${statement.map}`;
    case 'count':
      return `update @${statement.set} { ${printParts(statement.fields)} }`;
    case 'masquerade':
      return 'masquerade fully-random';
    default:
      return assertNever(statement);
  }
}

function printParts(parts: readonly PartType[]): string {
  return parts.join(' . ');
}

function printProtocols(protocols: readonly string[]): string {
  return protocols.length === 1 ? protocols.join('') : `{ ${protocols.join(', ')} }`;
}

function printMap(map: string | readonly VerdictElement[]): string {
  return typeof map === 'string' ? `@${map}` : `{ ${printVerdicts(map)} }`;
}
