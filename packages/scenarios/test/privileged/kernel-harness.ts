import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { openFaultyBackend, type TransportFaults } from '@switchyard/backend-nftables/testing';
import { type DataplaneBackend, type IpFamily, noopLogger, UsageError } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import type { BackendHarness, FakeKernel } from '../../src/index.ts';
import { addressPattern } from '../unit/address-pattern.ts';

/** Namespaces are called so, with the process's id and a number. */
const prefix = 'swy-kernel-';

/**
 * backend-nftables over netlink and the real kernel, in network namespaces of its own. Packets are not sent here:
 * `trace` is the lab's business. A namespace is emptied and used again once all backends over it are closed.
 */
export class KernelHarness implements BackendHarness, Disposable {
  readonly name = 'nftables';
  readonly dataplane = 'nftables';
  readonly #free: string[] = [];
  readonly #all: string[] = [];

  /** Removes the namespaces of runs that were killed. */
  constructor() {
    for (const [namespace, pid] of namespaces()) if (!isAlive(pid)) run('ip', 'netns', 'delete', namespace);
  }

  createKernel(): FakeKernel {
    const faults: TransportFaults = { rate: 0, random: () => 1, refusing: undefined };
    const kernel = new NamespaceKernel(
      faults,
      () => this.#take(),
      (namespace) => this.#free.push(namespace),
    );
    return {
      open: (ipFamily) => Promise.resolve(kernel.open(ipFamily)),
      trace: () => {
        throw new UsageError('kernel-harness.trace', 'this harness sends no packets; run the scenario at altitude 3');
      },
      injectFailures: (rate, random) => void Object.assign(faults, { rate, random }),
      refuse: (address) => {
        faults.refusing = addressPattern(address);
      },
      isEmpty: () => kernel.list() === '',
    };
  }

  [Symbol.dispose](): void {
    for (const namespace of this.#all) run('ip', 'netns', 'delete', namespace);
  }

  #take(): string {
    const used = this.#free.pop();
    if (used !== undefined) {
      run('ip', 'netns', 'exec', used, 'nft', 'flush', 'ruleset');
      return used;
    }
    const namespace = `${prefix}${process.pid}-${this.#all.length}`;
    execFileSync('ip', ['netns', 'add', namespace]);
    this.#all.push(namespace);
    return namespace;
  }
}

/** One namespace for as long as a backend is open over it. */
class NamespaceKernel {
  readonly #faults: TransportFaults;
  readonly #take: () => string;
  readonly #release: (namespace: string) => void;
  #namespace: string | undefined;
  #open = 0;

  constructor(faults: TransportFaults, take: () => string, release: (namespace: string) => void) {
    this.#faults = faults;
    this.#take = take;
    this.#release = release;
  }

  open(ipFamily: IpFamily): DataplaneBackend {
    const namespace = (this.#namespace ??= this.#take());
    const nft = createCommandRunner();
    const host = {
      runner: {
        run: (file: string, args: readonly string[], options: Parameters<typeof nft.run>[2]) =>
          nft.run('nsenter', [`--net=/run/netns/${namespace}`, '--', file, ...args], options),
      },
      logger: noopLogger,
      transport: 'netlink' as const,
      netns: `/run/netns/${namespace}`,
    };
    const backend = openFaultyBackend(host, ipFamily, this.#faults);
    this.#open++;
    return new Proxy(backend, {
      get: (target, name) => {
        if (name === Symbol.asyncDispose) return () => this.#close(target);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }

  list(): string {
    if (this.#namespace === undefined) return '';
    return execFileSync('ip', ['netns', 'exec', this.#namespace, 'nft', 'list', 'tables'], { encoding: 'utf8' });
  }

  async #close(backend: DataplaneBackend): Promise<void> {
    await backend[Symbol.asyncDispose]();
    this.#open--;
    if (this.#open > 0 || this.#namespace === undefined) return;
    this.#release(this.#namespace);
    this.#namespace = undefined;
  }
}

function namespaces(): readonly (readonly [namespace: string, pid: number])[] {
  if (!existsSync('/run/netns')) return [];
  return readdirSync('/run/netns').flatMap((name) => {
    const pid = new RegExp(`^${prefix}(\\d+)-\\d+$`).exec(name)?.[1];
    return pid === undefined ? [] : [[name, Number(pid)] as const];
  });
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** What is not there need not be removed. */
function run(file: string, ...args: readonly string[]): void {
  try {
    execFileSync(file, args, { stdio: 'ignore' });
  } catch (error) {
    if ((error as { readonly status?: unknown }).status === undefined) throw error;
  }
}
