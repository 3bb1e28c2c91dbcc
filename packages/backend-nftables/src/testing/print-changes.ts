import { InvariantError } from '@switchyard/core';
import { type Change, splitElementId } from '../render/elements.ts';
import type { ObjectName } from '../render/names.ts';

/** Elements per line. */
const elementsPerCommand = 500;

interface Run {
  readonly verb: 'add' | 'delete';
  readonly object: ObjectName;
  readonly elements: string[];
}

/** Ordered changes as the commands of nft that do the same. Neighbours of a kind share a line. */
export function printChanges(table: string, changes: readonly Change[]): string {
  const lines: string[] = [];
  let run: Run | undefined;
  const flush = (): void => {
    if (run !== undefined) lines.push(command(table, run));
    run = undefined;
  };
  for (const change of changes) {
    if (change.kind === 'replace') {
      flush();
      lines.push(...replaceLines(table, change.object, change.content));
      continue;
    }
    if (change.kind === 'class') {
      throw new InvariantError(`the fake has no classes made at run time, such as ${change.handleClass}`);
    }
    const { object, key } = splitElementId(change.id);
    if (run?.verb !== change.kind || run.object !== object || run.elements.length >= elementsPerCommand) {
      flush();
      run = { verb: change.kind, object, elements: [] };
    }
    run.elements.push(change.kind === 'add' && change.data !== '' ? `${key} : ${change.data}` : key);
  }
  flush();
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function command(table: string, { verb, object, elements }: Run): string {
  return `${verb} element inet ${table} ${object} { ${elements.join(', ')} }`;
}

function replaceLines(table: string, object: ObjectName, content: readonly string[]): string[] {
  const flush = `flush set inet ${table} ${object}`;
  return content.length === 0 ? [flush] : [flush, `add element inet ${table} ${object} { ${content.join(', ')} }`];
}
