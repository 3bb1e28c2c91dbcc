import { InvariantError } from '@switchyard/core';
import { chainName } from '../class-chains.ts';
import type { Change } from '../elements.ts';
import { idMask } from '../handles.ts';
import type { MessageWriter } from '@switchyard/native';
import { NFT_GOTO, NFT_MSG, NFTA, NLM_F } from './constants.ts';
import type { BatchTarget } from './encode-batch.ts';

/** Numbers of the expressions that a load-balancing chain is made of. */
const registers = { first: 1, second: { '4': 9, '6': 2 } } as const;
const metaPriority = 2;
const nfproto = { '4': 2, '6': 10 } as const;

/**
 * A load-balancing chain and the class that leads to it: `lbChain` of skeleton.ts in the kernel's own words. nft
 * cannot add such a rule to a loaded table, because it evaluates the stored types again and finds a conflict. The
 * protocol match, which only nft asks for, is left out: whoever comes here matched a port before.
 */
export function writeClass(target: BatchTarget, change: Extract<Change, { readonly kind: 'class' }>): void {
  const { suffix } = change;
  const name = chainName(change.chain, suffix);
  if (change.chain.kind !== 'lb') throw new InvariantError(`${name} is no load-balancing chain`);
  const { slots } = change.chain;
  const chain: Chain = { target, chain: name, suffix };
  const { writer, table, begin } = target;
  // A chain that is there must not get its rules a second time.
  begin(NFT_MSG.NEWCHAIN, NLM_F.CREATE | NLM_F.EXCL, name);
  writer.attributeText(NFTA.CHAIN.TABLE, table);
  writer.attributeText(NFTA.CHAIN.NAME, name);
  writer.endMessage();
  rule(chain, () => keepId(writer));
  rule(chain, () => pick(chain, slots));
  rule(chain, () => pick(chain, 1));
  writeVerdict(chain, change.handleClass);
}

interface Chain {
  readonly target: BatchTarget;
  readonly chain: string;
  readonly suffix: '4' | '6';
}

function rule({ target: { writer, table, begin }, chain }: Chain, write: () => void): void {
  begin(NFT_MSG.NEWRULE, NLM_F.CREATE | NLM_F.APPEND, chain);
  writer.attributeText(NFTA.RULE.TABLE, table);
  writer.attributeText(NFTA.RULE.CHAIN, chain);
  const list = writer.beginNested(NFTA.RULE.EXPRESSIONS);
  write();
  writer.endAttribute(list);
  writer.endMessage();
}

/** `meta priority set meta priority and 0x000fffff` */
function keepId(writer: MessageWriter): void {
  loadPriority(writer);
  expression(writer, 'bitwise', () => {
    writer.attributeUint32be(1, registers.first); // from
    writer.attributeUint32be(2, registers.first); // to
    writer.attributeUint32be(3, 4); // bytes
    hostNumber(writer, 4, idMask); // and
    hostNumber(writer, 5, 0); // xor
  });
  expression(writer, 'meta', () => {
    writer.attributeUint32be(2, metaPriority);
    writer.attributeUint32be(3, registers.first); // from
  });
}

/** `dnat ip addr . port to meta priority . numgen random mod N map @endpoints4` */
function pick({ target: { writer }, suffix }: Chain, modulus: number): void {
  loadPriority(writer);
  expression(writer, 'numgen', () => {
    // The register behind the four bytes of the priority.
    writer.attributeUint32be(1, 9);
    writer.attributeUint32be(2, modulus);
    writer.attributeUint32be(3, 1); // random
    writer.attributeUint32be(4, 0); // offset
  });
  expression(writer, 'lookup', () => {
    writer.attributeText(1, `endpoints${suffix}`);
    writer.attributeUint32be(2, registers.first); // key
    writer.attributeUint32be(3, registers.first); // value
  });
  expression(writer, 'nat', () => {
    writer.attributeUint32be(1, 1); // dnat
    writer.attributeUint32be(2, nfproto[suffix]);
    writer.attributeUint32be(3, registers.first); // address
    writer.attributeUint32be(5, registers.second[suffix]); // port, behind the address
  });
}

function loadPriority(writer: MessageWriter): void {
  expression(writer, 'meta', () => {
    writer.attributeUint32be(2, metaPriority);
    writer.attributeUint32be(1, registers.first); // to
  });
}

function expression(writer: MessageWriter, name: string, write: () => void): void {
  const element = writer.beginNested(NFTA.LIST.ELEM);
  writer.attributeText(NFTA.EXPR.NAME, name);
  const data = writer.beginNested(NFTA.EXPR.DATA);
  write();
  writer.endAttribute(data);
  writer.endAttribute(element);
}

/** A value in the machine's order, as packets' metadata are. */
function hostNumber(writer: MessageWriter, type: number, value: number): void {
  const nested = writer.beginNested(type);
  writer.attributeUint32(NFTA.DATA.VALUE, value);
  writer.endAttribute(nested);
}

function writeVerdict({ target: { writer, table, begin }, chain, suffix }: Chain, handleClass: number): void {
  const object = `lb${suffix}-classes`;
  begin(NFT_MSG.NEWSETELEM, NLM_F.CREATE, object);
  writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
  writer.attributeText(NFTA.ELEM_LIST.SET, object);
  const list = writer.beginNested(NFTA.ELEM_LIST.ELEMENTS);
  const element = writer.beginNested(NFTA.LIST.ELEM);
  hostNumber(writer, NFTA.ELEM.KEY, (handleClass << 20) >>> 0);
  const data = writer.beginNested(NFTA.ELEM.DATA);
  const verdict = writer.beginNested(NFTA.DATA.VERDICT);
  writer.attributeUint32be(NFTA.VERDICT.CODE, NFT_GOTO);
  writer.attributeText(NFTA.VERDICT.CHAIN, chain);
  for (const open of [verdict, data, element, list]) writer.endAttribute(open);
  writer.endMessage();
}
