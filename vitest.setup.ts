import { afterEach, beforeEach } from 'vitest';

// Console output from code under test is a defect: it hides in green runs and clutters red ones.
const methods = ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const;
const originals = new Map(methods.map((method) => [method, console[method]] as const));
let printed: string[] = [];

beforeEach(() => {
  printed = [];
  for (const method of methods) {
    console[method] = (...args: unknown[]) => {
      printed.push(`console.${method}: ${args.map(String).join(' ')}`);
    };
  }
});

afterEach(() => {
  for (const [method, original] of originals) console[method] = original;
  if (printed.length > 0) throw new Error(`the test printed to the console:\n${printed.join('\n')}`);
});
