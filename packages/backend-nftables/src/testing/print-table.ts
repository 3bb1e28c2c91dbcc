import { objectsOf, type TableDescription } from '../render/rules/model.ts';
import { printItem, printVerdicts, verdictsOf } from '../render/rules/print.ts';

/** A table as text that `nft -f` loads. Fails there if the table exists. */
export function printTable(table: TableDescription): string {
  const { name, comment } = table;
  const create = `create table inet ${name} { comment "${comment}"; }`;
  const body = table.items.flatMap(printItem).map((line) => `  ${line}`);
  return [create, `table inet ${name} {`, ...body, '}', ...printVerdictElements(table), ''].join('\n');
}

/** Elements that lead to chains come after all chains. */
function printVerdictElements(table: TableDescription): readonly string[] {
  return objectsOf(table).flatMap((object) => {
    const elements = verdictsOf(object);
    return elements.length === 0
      ? []
      : [`add element inet ${table.name} ${object.name} { ${printVerdicts(elements)} }`];
  });
}
