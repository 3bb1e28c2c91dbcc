import { HostError } from '@switchyard/core';
import type { Change } from '../render/elements.ts';

/** `exists`, `missing`: the kernel differs from the record. `permission`: every request fails. `other`: a limit. */
export type NftRefusal = 'permission' | 'exists' | 'missing' | 'other';

export interface RefusalDetails extends ErrorOptions {
  readonly refusal: NftRefusal;
  readonly change?: Change | undefined;
}

/** The kernel, or nft, refused. The transaction had no effect. */
export class NftError extends HostError {
  override readonly name = 'NftError';
  readonly refusal: NftRefusal;
  /** The change at fault; undefined when the kernel does not name it. */
  readonly change: Change | undefined;

  constructor(message: string, { refusal, change, ...options }: RefusalDetails) {
    super(`nftables.${refusal}`, message, options);
    this.refusal = refusal;
    this.change = change;
  }
}
