import { runAgentProgram } from './program.ts';

await runAgentProgram();
