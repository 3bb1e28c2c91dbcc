import type { Random } from '@switchyard/core';
import type { CommandOptions, CommandResult, CommandRunner } from '@switchyard/host';

/** Faults between a backend and the real iptables; may be changed while the backend lives. */
export interface CommandFaults {
  /** Share of restores that fail, 0 to 1: half are refused at one of their rules, half take effect and are killed. */
  rate: number;
  random: Random;
  /** Restores with a line that matches are refused there. */
  refusing: RegExp | undefined;
}

/** A match that no iptables has: where it stands, the real program refuses with its own words. */
const unknownMatch = ' -m switchyard-refuses';

/** A runner of the real programs, with faults in between. */
export function withFaults(runner: CommandRunner, faults: CommandFaults): CommandRunner {
  return {
    run: async (file, args, options) => {
      if (!file.endsWith('-restore') || options.stdin === undefined) return runner.run(file, args, options);
      const text = textOf(options.stdin);
      const at = refusedLine(text, faults);
      if (at !== undefined) return runner.run(file, args, { ...options, stdin: brokenAt(text, at) });
      const result = await runner.run(file, args, { ...options, stdin: text });
      return faults.random() < faults.rate / 2 && result.exitCode === 0 ? killed : result;
    },
  };
}

const killed: CommandResult = { exitCode: 137, stdout: '', stderr: '' };

/** The index of the line to refuse. */
function refusedLine(text: string, { rate, random, refusing }: CommandFaults): number | undefined {
  const lines = text.split('\n');
  const matching = lines.findIndex((line) => refusing?.test(line) === true);
  if (matching >= 0) return matching;
  if (random() >= rate / 2) return undefined;
  const rules = lines.flatMap((line, index) => (/^-[AID] /.test(line) ? [index] : []));
  return rules[Math.floor(random() * rules.length)];
}

function brokenAt(text: string, at: number): string {
  return text
    .split('\n')
    .map((line, index) => (index === at ? `${line}${unknownMatch}` : line))
    .join('\n');
}

function textOf(stdin: NonNullable<CommandOptions['stdin']>): string {
  return typeof stdin === 'string' ? stdin : [...stdin].join('');
}
