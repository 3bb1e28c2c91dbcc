import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type IpAddress, ipFamilyOf } from '@switchyard/core';
import type { ProbeResult } from './probe-types.ts';
import { sctpProgram } from './sctp.ts';

/** SCTP attempts, side by side. */
export interface SctpRequest {
  readonly source: string;
  readonly address: IpAddress;
  readonly port: number;
  readonly count: number;
}

interface Waiting extends PromiseWithResolvers<void> {
  readonly count: number;
  readonly results: ProbeResult[];
}

/** Makes SCTP attempts in this process's namespace, by a program that starts with the first of them and ends with this process. */
export class SctpSender {
  #program: ChildProcess | undefined;
  #requests = 0;
  readonly #waiting = new Map<number, Waiting>();

  /** The results, in no order. Rejects if the program ends. */
  async attempts({ source, address, port, count }: SctpRequest): Promise<readonly ProbeResult[]> {
    const id = ++this.#requests;
    const waiting = { count, results: [], ...Promise.withResolvers<void>() };
    this.#waiting.set(id, waiting);
    this.#program ??= this.#start();
    this.#program.stdin?.write(`${id} ${ipFamilyOf(address)} ${source} ${address} ${port} ${count}\n`);
    await waiting.promise;
    return waiting.results;
  }

  #start(): ChildProcess {
    const program = spawn('perl', ['-e', sctpProgram, 'send'], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: program.stdout }).on('line', (line) => {
      const [, id, result] = /^(\d+) (.*)$/.exec(line) ?? [];
      const waiting = this.#waiting.get(Number(id));
      waiting?.results.push(resultOf(result ?? ''));
      if (waiting === undefined || waiting.results.length < waiting.count) return;
      this.#waiting.delete(Number(id));
      waiting.resolve();
    });
    program.once('close', (status) => {
      this.#program = undefined;
      for (const { reject } of this.#waiting.values()) reject(new Error(`the SCTP program ended with ${status}`));
      this.#waiting.clear();
    });
    return program;
  }
}

function resultOf(line: string): ProbeResult {
  if (line === 'refused' || line === 'timeout') return { status: line, took: 0 };
  const [by, destinationPort, seenSource] = line.split(' ');
  if (by === 'error' || seenSource === undefined) return { status: 'unreachable', code: line, took: 0 };
  return {
    status: 'answered',
    took: 0,
    httpStatus: undefined,
    headers: {},
    body: JSON.stringify({ destinationPort: Number(destinationPort) }),
    by,
    node: undefined,
    seenSource,
    seenSourcePort: undefined,
  };
}
