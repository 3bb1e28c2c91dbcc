import type { DataplaneBackend } from '@switchyard/core/engine';
import type { IpFamily, Random } from '@switchyard/core';
import { NftablesBackend, type NftablesHost } from '../backend.ts';
import type { Change } from '../render/elements.ts';
import { NftError } from '../kernel/nft-error.ts';
import { openTransport } from '../open-transport.ts';
import type { NftTransport, WriteRequest } from '../kernel/transport.ts';

/** Faults between a backend and a real kernel; may be changed while the backend runs. */
export interface TransportFaults {
  /** Share of transactions that fail, 0 to 1: half of them before they reach the kernel, half when they took effect. */
  rate: number;
  random: Random;
  /** Transactions with a change that matches are refused. */
  refusing: RegExp | undefined;
}

/** The backend over its real transport and a real kernel, with faults in between. */
export function openFaultyBackend(host: NftablesHost, ipFamily: IpFamily, faults: TransportFaults): DataplaneBackend {
  return new NftablesBackend(host, withFaults(openTransport(host), faults), ipFamily);
}

function withFaults(transport: NftTransport, faults: TransportFaults): NftTransport {
  const write = async (attempt: string, request: WriteRequest, signal: AbortSignal): Promise<void> => {
    if (request.changes.some((change) => faults.refusing?.test(changeText(change)) === true)) throw injected(attempt);
    const isFailing = faults.random() < faults.rate;
    if (isFailing && faults.random() < 0.5) throw injected(attempt);
    await transport.write(attempt, request, signal);
    if (isFailing) throw injected(`${attempt} (it was written, but the answer got lost)`);
  };
  return new Proxy(transport, {
    get: (target, name) => {
      if (name === 'write') return write;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function changeText(change: Change): string {
  switch (change.kind) {
    case 'add':
      return `${change.id} : ${change.data}`;
    case 'delete':
      return change.id;
    case 'replace':
      return `${change.object} ${change.content.join(' ')}`;
    case 'class':
      return `class ${change.handleClass}`;
    default:
      return change satisfies never;
  }
}

function injected(attempt: string): NftError {
  return new NftError(`${attempt}: injected failure`, { refusal: 'other' });
}
