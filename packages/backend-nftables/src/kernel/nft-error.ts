import { HostError } from '@switchyard/core';
import type { Change } from '../render/elements.ts';

/**
 * What kind of refusal it was. `exists` and `missing`: the kernel holds something else than we thought.
 * `permission`: nothing will work. `other`: a limit was reached, or the request was not understood.
 */
export type NftRefusal = 'permission' | 'exists' | 'missing' | 'other';

/** What is known about a refusal besides its text. */
export interface RefusalDetails extends ErrorOptions {
  readonly refusal: NftRefusal;
  /** The change at fault, where the kernel tells. */
  readonly change?: Change | undefined;
}

/** The kernel, or nft, refused. The transaction had no effect. */
export class NftError extends HostError {
  override readonly name = 'NftError';
  readonly refusal: NftRefusal;
  /** The change at fault; undefined when it is not known which one it is. */
  readonly change: Change | undefined;

  constructor(message: string, { refusal, change, ...options }: RefusalDetails) {
    super(`nftables.${refusal}`, message, options);
    this.refusal = refusal;
    this.change = change;
  }
}
