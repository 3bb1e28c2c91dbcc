export { type BackendHost, type BackendPlace, registerBackend, type RegisteredBackend } from './backends.ts';
export { runAgentProgram } from './program.ts';
