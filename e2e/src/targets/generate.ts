import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { labCells } from '../lab-cell.ts';
import { expandMatrix } from '../matrix/expand-matrix.ts';
import { readMatrix } from '../matrix/read-matrix.ts';
import { projectJson } from './project-json.ts';

// `nx generate e2e` writes e2e/project.json from e2e/matrix.json; a test says when that was forgotten.

const file = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const matrix = readMatrix('e2e/matrix.json', await readFile(file('matrix.json'), 'utf8'));
await writeFile(file('project.json'), projectJson([...expandMatrix(matrix).cells, ...labCells]));
