import { HostError, messageOf, millis, type Millis } from '@switchyard/core';
import type { LabNode, LabProcess } from '@switchyard/lab';
import type { ScenarioAgent } from '@switchyard/scenarios';
import { markerRounds } from '../engine/error-pace.ts';
import type { Marker } from './cluster-feed.ts';
import { type ProxyProgram, proxyConfigFile, proxyFlags, type ProxySettings } from './proxy-program.ts';
import type { OwnEnd, ProxyControl, StartOptions } from '../model/test-environment.ts';
import { writeFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { setPriority } from 'node:os';

/** Longest time for a proxy to apply what was written, in milliseconds. The start of kube-proxy takes about a second. */
const patience = 30_000;

export interface LabProxyOptions {
  readonly program: ProxyProgram;
  readonly node: LabNode;
  readonly marker: Marker;
  /** Folder of its configuration file. */
  readonly folder: string;
  readonly settings: Omit<ProxySettings, 'agent'>;
  /** The same program on the lab's other nodes, for cases that need it there. */
  readonly others: readonly LabProxy[];
}

export class LabProxy implements ProxyControl, AsyncDisposable {
  readonly #options: LabProxyOptions;
  #process: LabProcess | undefined;
  #agent: ScenarioAgent | undefined;
  #end: number | string | undefined;
  #hasSettled = false;

  constructor(options: LabProxyOptions) {
    this.#options = options;
  }

  get #isRunning(): boolean {
    return this.#process !== undefined && this.#end === undefined;
  }

  /** Makes the proxy run with these settings; keeps one that already does. Does not wait until it has settled. */
  async runWith(agent: ScenarioAgent): Promise<void> {
    const isSame = JSON.stringify(agent) === JSON.stringify(this.#agent);
    if (isSame && this.#isRunning) return;
    await this.stop();
    this.#agent = agent;
    await this.start();
  }

  kill(): Promise<void> {
    return this.stop(millis(0));
  }

  async stop(grace: Millis = millis(5000)): Promise<void> {
    await this.#process?.stop(grace);
    this.#process = undefined;
  }

  async start({ isTimed = false }: StartOptions = {}): Promise<Millis> {
    const { program, node, folder, settings } = this.#options;
    const agent = this.#agent;
    if (agent === undefined) throw new HostError('conformance.proxy', 'the proxy was started before any `reset`');
    if (this.#isRunning) throw new HostError('conformance.proxy', `${program.about.name} was started while it runs`);
    const all = { ...settings, agent };
    await mkdir(folder, { recursive: true });
    const config = `${folder}/kube-proxy-config.json`;
    await writeFile(config, proxyConfigFile(all));
    const [file, ...args] = program.command(
      { node, config, kubeconfig: settings.kubeconfig, flags: proxyFlags(all) },
      agent,
    );
    this.#end = undefined;
    const at = Number(process.hrtime.bigint()) / 1e6; // the clock of probers, unlike this process's own
    const started = node.spawn(file, args, {
      logName: 'proxy',
      env: { XTABLES_LOCKFILE: `${folder}/.xtables.lock` }, // does not wait for other users of iptables on this machine
    });
    if (isTimed) goFirst(started.pid);
    this.#process = started;
    void started.ended.then((status) => {
      if (this.#process === started) this.#end = status;
    });
    return millis(at);
  }

  /** Writes a marker and waits for its answer, which shows that the proxy has seen everything before. */
  async settled(signal: AbortSignal): Promise<void> {
    const { program, marker } = this.#options;
    const rounds = markerRounds(program.about.dataplane);
    for (let round = 0; round < rounds; round++) {
      marker.write();
      await this.#answered(signal);
    }
    this.#hasSettled = true;
  }

  async onOtherNodes(): Promise<AsyncDisposable> {
    const { others } = this.#options;
    const agent = this.#agent;
    if (agent === undefined) throw new HostError('conformance.proxy', 'the proxy was started before any `reset`');
    for (const other of others) await other.runWith(agent);
    return {
      [Symbol.asyncDispose]: async () => {
        await Promise.all(others.map((other) => other.stop()));
      },
    };
  }

  async ownEnd(): Promise<OwnEnd | undefined> {
    if (!this.#hasSettled || this.#process === undefined || this.#end === undefined) return undefined;
    return { observed: `has ended with ${this.#end}`, log: (await this.#whyText()).split('\n') };
  }

  /** The lines of the log that say why it ended. A Go program writes pages of stacks after them. */
  async #whyText(): Promise<string> {
    const file = this.#process?.logFile;
    if (file === undefined) return '(it is not running)';
    const text = await readFile(file, 'utf8').catch((error: unknown) => `(cannot be read: ${messageOf(error)})`);
    const lines = text.trim().split('\n').slice(-2000);
    const fatal = lines.findLastIndex((line) => /^(F\d{4} |panic: |fatal error: |Error: |error: )/.test(line));
    if (fatal < 0) return lines.slice(-15).join('\n');
    const told = lines.slice(fatal, fatal + 8);
    const stacks = told.findIndex((line) => line.startsWith('goroutine '));
    return told.slice(0, stacks < 0 ? told.length : stacks).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #answered(signal: AbortSignal): Promise<void> {
    const running = this.#process;
    const { name } = this.#options.program.about;
    if (running === undefined) throw new HostError('conformance.proxy', `${name} does not run, so nothing can settle`);
    const over = new AbortController();
    const timeout = AbortSignal.timeout(patience);
    void running.ended.then((status) => {
      if (!over.signal.aborted) over.abort(new Error(`has ended with ${status}`));
    });
    try {
      await this.#options.marker.answered(AbortSignal.any([signal, over.signal, timeout]));
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      if (!over.signal.aborted && !timeout.aborted) throw cause; // the prober of the marker has ended
      const what = over.signal.aborted
        ? messageOf(over.signal.reason)
        : `does not show by packets, within ${patience / 1000} s, that it has what was written`;
      const tail = await this.#whyText();
      const says = tail.trim() === '' ? 'is empty' : `says:\n${tail}`;
      throw new HostError('conformance.proxy', `${name} ${what}; its log ${says}`, { cause });
    } finally {
      over.abort();
    }
  }
}

/** The highest priority of a process without real-time scheduling. */
const first = -20;

/**
 * Gives a process that was just started, and its children, the highest priority on this machine, so that a measured time does not
 * depend on other work. If that is not allowed, the time only varies more.
 */
export function goFirst(pid: number): void {
  attempt(() => setPriority(pid, first));
  // With automatic groups, priorities count within a session only; each program of a lab is one of its own.
  attempt(() => writeFileSync(`/proc/${pid}/autogroup`, String(first)));
}

function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // no right to, no such file, or the process has ended
  }
}
