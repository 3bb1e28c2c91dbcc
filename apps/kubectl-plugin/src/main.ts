import { seconds, systemClock } from '@switchyard/core';
import { runApp } from '@switchyard/host';
import { findAgents } from './access/agents.ts';
import { createKubectl } from './access/kubectl.ts';
import type { CommandContext, ExitStatus } from './commands/context.ts';
import { drainCommand } from './commands/drain.ts';
import { lossesCommand } from './commands/losses.ts';
import { rolloutCommand } from './commands/rollout.ts';
import { statusCommand } from './commands/status.ts';
import { tableCommand } from './commands/table.ts';
import { uiCommand } from './commands/ui.ts';
import { whyCommand } from './commands/why.ts';
import { type CommandName, readConfig, usage } from './config.ts';

const commands: Readonly<Record<CommandName, (context: CommandContext, signal: AbortSignal) => Promise<ExitStatus>>> = {
  status: statusCommand,
  table: tableCommand,
  losses: lossesCommand,
  why: whyCommand,
  ui: uiCommand,
  drain: drainCommand,
  rollout: rolloutCommand,
};

const print = (text: string): void => void process.stdout.write(text);
const warn = (text: string): void => void process.stderr.write(`kubectl-switchyard: ${text}\n`);

if (Number.parseInt(process.versions.node, 10) < 24) {
  warn(`needs Node.js 24 or newer, and ${process.execPath} is ${process.version}`);
  process.exit(1);
}

// A reader that has ended, as head(1) does, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

await runApp({
  name: 'kubectl-switchyard',
  exitGrace: seconds(2),
  main: async (signal) => {
    const config = readConfig(process.argv.slice(2), process.env);
    if (config === undefined) return print(usage);
    const kubectl = createKubectl(config.kubectl.file, config.kubectl.flags);
    const context: CommandContext = {
      config,
      kubectl,
      findAgents: async (nodes) => {
        const found = await findAgents({ ...config.agents, nodes }, kubectl, signal);
        for (const problem of found.problems) warn(problem);
        return found;
      },
      clock: systemClock,
      print,
      warn,
    };
    process.exitCode = await commands[config.command](context, signal);
  },
});
