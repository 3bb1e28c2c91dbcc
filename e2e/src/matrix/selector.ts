import { type DataplaneName, dataplaneNames } from '@switchyard/scenarios';
import { type Cell, type CellFamily, type CellLoadBalancer, cellFamilies, cellLoadBalancers } from '../cell.ts';
import type { Field } from '../document/field.ts';
import { readList, readOneOf, readOptional, readText } from '../document/read-field.ts';

/** Some cells of the matrix. Undefined means any value. */
export interface CellSelector {
  readonly backend?: readonly DataplaneName[] | undefined;
  readonly ipFamily?: readonly CellFamily[] | undefined;
  /** Versions such as `1.36`. */
  readonly kubernetes?: readonly string[] | undefined;
  readonly loadBalancer?: readonly CellLoadBalancer[] | undefined;
}

/** The fields by which cells are chosen. */
export const selectorFields = ['backend', 'ipFamily', 'kubernetes', 'loadBalancer'] as const;

/** Reads the fields of a selector out of an object's. */
export function readSelector(fields: Readonly<Record<(typeof selectorFields)[number], Field>>): CellSelector {
  const words = <Word extends string>(field: Field, known: readonly Word[]): readonly Word[] | undefined =>
    readOptional(field, (list) => readList(list, (item) => readOneOf(item, known)));
  return {
    backend: words(fields.backend, dataplaneNames),
    ipFamily: words(fields.ipFamily, cellFamilies),
    kubernetes: readOptional(fields.kubernetes, (list) => readList(list, readVersion)),
    loadBalancer: words(fields.loadBalancer, cellLoadBalancers),
  };
}

/** A version of Kubernetes without the patch level. */
export function readVersion(field: Field): string {
  return readText(field, /^1\.\d+$/, 'a version such as "1.36", as a text');
}

/** Whether the selector means this cell. */
export function isSelected(selector: CellSelector, cell: Cell): boolean {
  return selectorFields.every((name) => {
    const words: readonly string[] | undefined = selector[name];
    return words === undefined || words.includes(cell[name]);
  });
}
