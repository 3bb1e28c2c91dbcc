import { HostError, type IpFamily, type Logger } from '@switchyard/core';
import { findOtherPrograms, type OtherProgram, refusalText } from './other-load-balancers.ts';
import { ourPrograms } from './our-programs.ts';

/** Where others may be, and who is told. */
export interface OthersOptions {
  readonly ipFamily: IpFamily;
  readonly bpffs: string;
  readonly logger: Logger;
}

/** Every so many looks it is looked for others: once in two seconds. */
const looksBetween = 8;

/** Other load balancers at our cgroup: refused before we begin, told of when they come later. */
export class OthersWatch {
  readonly #options: OthersOptions;
  readonly #told = new Set<string>();
  #looks = 0;

  constructor(options: OthersOptions) {
    this.#options = options;
  }

  /**
   * Throws `HostError` where another load balancer serves the cgroup's sockets. Not where our own programs are attached already: to
   * leave those as they are would help nobody.
   */
  refuse(cgroup: string): void {
    const { bpffs } = this.#options;
    if (ourPrograms(bpffs).size > 0) return this.#look(cgroup, true);
    const other = findOtherPrograms({ cgroup, isOurs: () => false }, { isDeep: true }).find(isOwned);
    if (other === undefined) return;
    throw new HostError('ebpf.other', `cannot attach programs to sockets: ${refusalText(other)}`);
  }

  /** Warns of others once each. Cheap most of the time. */
  notice(cgroup: string): void {
    if (this.#looks++ % looksBetween === 0) this.#look(cgroup, false);
  }

  #look(cgroup: string, isDeep: boolean): void {
    const { bpffs, ipFamily, logger } = this.#options;
    const ours = ourPrograms(bpffs);
    for (const other of findOtherPrograms({ cgroup, isOurs: (id) => ours.has(id) }, { isDeep })) {
      const key = `${other.hook} ${other.id}`;
      if (this.#told.has(key)) continue;
      this.#told.add(key);
      const { hook, name, owner } = other;
      if (isOwned(other)) {
        const text = 'another load balancer is at the sockets: connections go where the first of the two leads them';
        logger.warn(text, { ipFamily, owner, hook, name, cgroup });
      } else logger.info('a program of somebody else is at the sockets', { ipFamily, hook, name, cgroup });
    }
  }
}

function isOwned(other: OtherProgram): boolean {
  return other.owner !== undefined;
}
