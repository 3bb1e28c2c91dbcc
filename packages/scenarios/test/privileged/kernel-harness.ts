import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DataplaneBackend } from '@switchyard/core/engine';
import { type DataplaneTraits, type IpFamily, type Random, UsageError } from '@switchyard/core';
import { type CommandRunner, createCommandRunner } from '@switchyard/host';
import type { BackendHarness, FakeKernel } from '../../src/index.ts';
import { addressPattern } from '../unit/address-pattern.ts';

/** Namespaces are called so, with the process's id and a number. */
const prefix = 'swy-kernel-';

/** Injected faults; may be changed while a backend is open. */
export interface KernelFaults {
  rate: number;
  random: Random;
  /** Finds the refused address in what is written as text. */
  refusing: RegExp | undefined;
  refusedAddress: string | undefined;
}

/** Nothing goes wrong. */
export function noKernelFaults(): KernelFaults {
  return { rate: 0, random: () => 1, refusing: undefined, refusedAddress: undefined };
}

/** A backend over the real kernel. */
export interface KernelSubject extends Pick<BackendHarness, 'name' | 'dataplane'> {
  /** A backend in a namespace; what it finds out about the machine is not disturbed by faults. */
  open(namespace: string, ipFamily: IpFamily, faults: KernelFaults, signal: AbortSignal): Promise<DataplaneBackend>;
  /** Whether nothing of it is left in a namespace. */
  isEmpty(namespace: string): boolean;
  /** Makes a used namespace as good as new. Absent: it is thrown away. */
  clear?(namespace: string): void;
  /** Removes what it made beside namespaces. */
  [Symbol.dispose]?(): void;
}

/**
 * A backend and the real kernel, in network namespaces of its own. Packets are not sent here: `trace` is the lab's
 * business. A namespace is emptied and used again once all backends over it are closed.
 */
export class KernelHarness implements BackendHarness, Disposable {
  readonly name: string;
  readonly dataplane: DataplaneTraits;
  readonly #subject: KernelSubject;
  readonly #free: string[] = [];
  readonly #all = new Set<string>();
  #made = 0;

  /** Removes the namespaces of runs that were killed. */
  constructor(subject: KernelSubject) {
    this.name = subject.name;
    this.dataplane = subject.dataplane;
    this.#subject = subject;
    for (const [namespace, pid] of namespaces()) if (!isAlive(pid)) remove(namespace);
  }

  createKernel(): FakeKernel {
    const faults = noKernelFaults();
    const kernel = new NamespaceKernel(
      (namespace, ipFamily, signal) => this.#subject.open(namespace, ipFamily, faults, signal),
      () => this.#take(),
      (namespace) => this.#release(namespace),
    );
    return {
      open: (ipFamily, signal) => kernel.open(ipFamily, signal),
      trace: () => {
        throw new UsageError(
          'kernel-harness.trace',
          'this harness sends no packets; run the scenario with packets: ./dev conformance',
        );
      },
      injectFailures: (rate, random) => void Object.assign(faults, { rate, random }),
      refuse: (address) => {
        faults.refusing = addressPattern(address);
        faults.refusedAddress = address;
      },
      isEmpty: () => kernel.namespace === undefined || this.#subject.isEmpty(kernel.namespace),
    };
  }

  [Symbol.dispose](): void {
    this.#subject[Symbol.dispose]?.();
    for (const namespace of this.#all) remove(namespace);
  }

  #take(): string {
    const used = this.#free.pop();
    if (used !== undefined) {
      this.#subject.clear?.(used);
      return used;
    }
    const namespace = `${prefix}${process.pid}-${this.#made++}`;
    execFileSync('ip', ['netns', 'add', namespace]);
    this.#all.add(namespace);
    return namespace;
  }

  #release(namespace: string): void {
    if (this.#subject.clear !== undefined) return void this.#free.push(namespace);
    this.#all.delete(namespace);
    remove(namespace);
  }
}

/** Runs programs in a namespace, with a lock file of its own for iptables. */
export function runnerIn(namespace: string): CommandRunner {
  const machine = createCommandRunner();
  return {
    run: (file, args, options) =>
      machine.run('nsenter', [`--net=/run/netns/${namespace}`, '--', file, ...args], {
        ...options,
        env: { XTABLES_LOCKFILE: lockFileOf(namespace), ...options.env },
      }),
  };
}

function lockFileOf(namespace: string): string {
  return join(tmpdir(), `${namespace}.lock`);
}

/** Output of a program in a namespace. */
export function printedIn(namespace: string, ...command: readonly string[]): string {
  const args = ['netns', 'exec', namespace, ...command];
  return execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

/** One namespace for as long as a backend is open over it. */
class NamespaceKernel {
  readonly #create: (namespace: string, ipFamily: IpFamily, signal: AbortSignal) => Promise<DataplaneBackend>;
  readonly #take: () => string;
  readonly #release: (namespace: string) => void;
  namespace: string | undefined;
  #open = 0;

  constructor(
    create: (namespace: string, ipFamily: IpFamily, signal: AbortSignal) => Promise<DataplaneBackend>,
    take: () => string,
    release: (namespace: string) => void,
  ) {
    this.#create = create;
    this.#take = take;
    this.#release = release;
  }

  async open(ipFamily: IpFamily, signal: AbortSignal): Promise<DataplaneBackend> {
    const namespace = (this.namespace ??= this.#take());
    this.#open++;
    const backend = await this.#create(namespace, ipFamily, signal);
    return new Proxy(backend, {
      get: (target, name) => {
        if (name === Symbol.asyncDispose) return () => this.#close(target);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }

  async #close(backend: DataplaneBackend): Promise<void> {
    await backend[Symbol.asyncDispose]();
    this.#open--;
    if (this.#open > 0 || this.namespace === undefined) return;
    this.#release(this.namespace);
    this.namespace = undefined;
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

function remove(namespace: string): void {
  run('ip', 'netns', 'delete', namespace);
  rmSync(lockFileOf(namespace), { force: true });
}

/** Ignores missing objects. */
function run(file: string, ...args: readonly string[]): void {
  try {
    execFileSync(file, args, { stdio: 'ignore' });
  } catch (error) {
    if ((error as { readonly status?: unknown }).status === undefined) throw error;
  }
}
