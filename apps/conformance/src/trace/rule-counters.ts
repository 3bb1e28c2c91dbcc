import { type IpFamily, millis } from '@switchyard/core';
import type { LabNode } from '@switchyard/lab';

/** More rules than a packet and its answer match; further ones are other traffic of the node. */
const most = 40;

/** The counters of iptables-legacy's rules, which nftables' traces do not show. */
export class RuleCounters {
  readonly #node: LabNode;
  readonly #program: string;
  readonly #before: string | undefined;

  private constructor(node: LabNode, program: string, before: string | undefined) {
    this.#node = node;
    this.#program = program;
    this.#before = before;
  }

  /** Reads the current counters. A node without iptables-legacy has none. */
  static async read(node: LabNode, family: IpFamily): Promise<RuleCounters> {
    const program = family === 'IPv4' ? 'iptables-legacy-save' : 'ip6tables-legacy-save';
    return new RuleCounters(node, program, await saved(node, program));
  }

  /** The rules that packets have matched since, one line each, other traffic of the node included. */
  async rises(): Promise<readonly string[]> {
    if (this.#before === undefined) return [];
    const after = await saved(this.#node, this.#program);
    const rises = after === undefined ? [] : counterDifference(this.#before, after);
    if (rises.length === 0) return [];
    return ['counters of iptables-legacy that rose meanwhile:', ...rises.slice(0, most).map((line) => `  ${line}`)];
  }
}

/** Undefined where the program is missing or there are no such rules. */
async function saved(node: LabNode, program: string): Promise<string | undefined> {
  const result = await node.run(program, ['-c'], { timeout: millis(2_000) }).catch(() => undefined);
  return result?.exitCode === 0 && result.stdout !== '' ? result.stdout : undefined;
}

/** A rule of `iptables-save -c` that packets matched in between, as `table chain  +packets  rule`. */
export function counterDifference(before: string, after: string): readonly string[] {
  const known = new Map(counters(before).map(({ key, packets }) => [key, packets]));
  return counters(after).flatMap(({ key, packets, text }) => {
    const more = packets - (known.get(key) ?? 0);
    return more > 0 ? [`${text}  +${more}`] : [];
  });
}

interface Counter {
  readonly key: string;
  readonly packets: number;
  readonly text: string;
}

function counters(save: string): readonly Counter[] {
  let table = '';
  const seen = new Map<string, number>();
  return save.split('\n').flatMap((line) => {
    if (line.startsWith('*')) table = line.slice(1).trim();
    const [, packets = '', chain = '', spec = ''] = /^\[(\d+):\d+\] -A (\S+) ?(.*)$/.exec(line) ?? [];
    if (chain === '') return [];
    const text = `${table}/${chain}  ${spec}`;
    // The same rule may stand in a chain twice.
    const nth = (seen.get(text) ?? 0) + 1;
    seen.set(text, nth);
    return [{ key: `${text} #${nth}`, packets: Number(packets), text }];
  });
}
