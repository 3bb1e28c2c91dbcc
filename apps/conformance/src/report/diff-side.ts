import { ConfigError } from '@switchyard/core';
import type { ReportFile } from '../model/report-file.ts';
import { type Column, columnsOf } from './columns.ts';

/** One side of a comparison: a proxy in a cell, all its rounds. */
export interface DiffSide {
  /** File of the report. */
  readonly file: string;
  readonly column: Column;
}

/** `A.json#iptables-nft` as file and choice; without a `#` the choice is undefined. */
export function splitSide(argument: string): { readonly file: string; readonly choice: string | undefined } {
  const at = argument.lastIndexOf('#');
  return at < 0
    ? { file: argument, choice: undefined }
    : { file: argument.slice(0, at), choice: argument.slice(at + 1) };
}

/**
 * The side that `choice` names in a report: the name of a proxy (`iptables-nft`), or with its cell (`iptables-nft/ipv6`). Undefined: the
 * only one there is. Throws `ConfigError` with all choices when none or several fit.
 */
export function pickSide(file: string, report: ReportFile, choice: string | undefined): DiffSide {
  const columns = columnsOf(report);
  const fitting = columns.filter(({ key, proxy }) => choice === undefined || choice === key || choice === proxy);
  const [column] = fitting;
  if (column !== undefined && fitting.length === 1) return { file, column };
  const choices = columns.map(({ key }) => `\n  ${file}#${key}`).join('');
  const what =
    columns.length === 0
      ? 'it holds no run'
      : fitting.length === 0
        ? `it holds no run of '${choice ?? ''}'; give one of`
        : `it holds runs of ${fitting.length} proxies or cells${choice === undefined ? '' : ` called '${choice}'`}; give one of`;
  throw new ConfigError('diff.choice', `comparing ${file}: ${what}${columns.length === 0 ? '' : choices}`);
}
