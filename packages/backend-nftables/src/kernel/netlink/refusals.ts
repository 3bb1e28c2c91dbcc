import { assertNever, HostError } from '@switchyard/core';
import {
  errnoName,
  type ExchangeErrors,
  type KernelAnswer,
  messageHeaderLength,
  NativeError,
  readAttributes,
  readUint32,
} from '@switchyard/native';
import { NFTA } from '@switchyard/netfilter';
import { chainName } from '../../render/class-chains.ts';
import { type Change, splitElementId } from '../../render/elements.ts';
import { NftError, type NftRefusal } from '../nft-error.ts';
import type { EncodedBatch, SentMessage } from './encode-batch.ts';

export const exchangeErrors: ExchangeErrors = {
  closed: () => new HostError('nftables.closed', 'cannot talk to the kernel: the transport was disposed'),
  changing: (attempts) =>
    new HostError(
      'nftables.dump',
      `cannot read our own nft table: it changed during each of ${attempts} attempts; will be tried again`,
    ),
  noAnswer: () =>
    new HostError(
      'nftables.noAnswer',
      'unknown whether the kernel took a request to nftables: it did not answer; the table will be read back',
    ),
};

/** Whether the kernel could not take a datagram because it is too large for it just now. */
export function isTooLarge(error: unknown): error is NativeError {
  return (
    error instanceof NativeError &&
    error.syscall === 'sendto' &&
    ['EMSGSIZE', 'ENOBUFS', 'ENOMEM'].includes(error.errnoName)
  );
}

export interface Attempted {
  readonly attempt: string;
  readonly table: string;
  readonly batch: EncodedBatch;
  /** Empty for a batch of other things than changes. */
  readonly changes: readonly Change[];
}

/** The refusal of a batch in words, with the change at fault where the kernel pointed at it. */
export function explainRefusal(answer: KernelAnswer, attempted: Attempted): NftError {
  const { attempt, table, batch, changes } = attempted;
  const message = batch.messages.find(({ sequence }) => sequence === answer.sequence);
  const fault = message === undefined ? undefined : findFault(answer, message, batch.bytes);
  const change = fault?.kind === 'element' ? changes[fault.change] : undefined;
  const what = faultText(fault, change, table);
  const said = answer.text === undefined ? '' : `; kernel message: ${answer.text}`;
  return new NftError(
    `${attempt}: the kernel answered ${errnoName(answer.errno)}${what}: ${meaningOf(answer.errno, fault)}${said}; ` +
      'nothing of it took effect',
    { refusal: refusalOf(answer.errno), change },
  );
}

type Fault =
  | { readonly kind: 'element'; readonly change: number; readonly object: string | undefined }
  | { readonly kind: 'object'; readonly object: string | undefined }
  | { readonly kind: 'table' };

function findFault({ offset }: KernelAnswer, message: SentMessage, batch: Uint8Array): Fault {
  const { object, firstChange, isPerElement } = message;
  if (offset === undefined) return { kind: 'object', object };
  const start = message.offset + messageHeaderLength + 4;
  const end = message.offset + readUint32(batch, message.offset);
  const target = message.offset + offset;
  for (const attribute of readAttributes(batch, start, end)) {
    if (target >= attribute.end) continue;
    if (attribute.type === NFTA.ELEM_LIST.TABLE) return { kind: 'table' };
    if (attribute.type !== NFTA.ELEM_LIST.ELEMENTS || target < attribute.start) return { kind: 'object', object };
    if (!isPerElement) return { kind: 'element', change: firstChange, object };
    let change = firstChange;
    for (const element of readAttributes(batch, attribute.start, attribute.end)) {
      if (target < element.end) break;
      change++;
    }
    return { kind: 'element', change, object };
  }
  return { kind: 'object', object };
}

function faultText(fault: Fault | undefined, change: Change | undefined, table: string): string {
  switch (fault?.kind) {
    case undefined:
      return ''; // about the batch as a whole
    case 'table':
      return ` about table inet ${table}`;
    case 'object':
      return ` about ${fault.object ?? 'an object'} of table inet ${table}`;
    case 'element':
      return ` when it was to ${change === undefined ? `change ${fault.object}` : changeText(change)}`;
  }
}

function changeText(change: Change): string {
  switch (change.kind) {
    case 'add':
    case 'delete': {
      const { object, key } = splitElementId(change.id);
      if (change.kind === 'delete') return `delete ${key} from ${object}`;
      return `add ${key}${change.data === '' ? '' : ` : ${change.data}`} to ${object}`;
    }
    case 'replace':
      return `put ${change.content.join(', ')} into ${change.object}`;
    case 'class':
      return `add chain ${chainName(change.chain, change.suffix)}`;
    default:
      return assertNever(change);
  }
}

const refusals: Readonly<Record<string, NftRefusal>> = {
  EPERM: 'permission',
  EACCES: 'permission',
  EEXIST: 'exists',
  ENOENT: 'missing',
};

function refusalOf(errno: number): NftRefusal {
  return refusals[errnoName(errno)] ?? 'other';
}

const meanings: Readonly<Record<string, string>> = {
  EPERM: 'it is not allowed; run as root or with CAP_NET_ADMIN',
  EACCES: 'it is not allowed; run as root or with CAP_NET_ADMIN',
  EEXIST: 'it conflicts with an existing one',
  ENOENT: 'it does not exist',
  ENFILE: 'it is full; make it larger',
  ENOSPC: 'it is full; make it larger',
  ENOMEM: 'the kernel has no memory for it',
  EINVAL: 'it does not fit the existing objects; another build may have made the table',
  EBUSY: 'it is in use',
  EMLINK: 'the chains would form a loop',
};

function meaningOf(errno: number, fault: Fault | undefined): string {
  const name = errnoName(errno);
  if (name === 'ENOENT' && fault?.kind === 'table') return 'there is no such table';
  return meanings[name] ?? 'this is unexpected';
}

/** The refusal of a request that only reads. */
export function refusedRead(attempt: string, errno: number): NftError {
  const message = `${attempt}: the kernel answered ${errnoName(errno)}: ${meaningOf(errno, undefined)}; will be tried again`;
  return new NftError(message, { refusal: refusalOf(errno) });
}
