import { registerBackend, runAgentProgram } from '@switchyard/node-agent';
import { jsonFileBackend } from './backend.ts';
import { folderStore } from './store.ts';
import { jsonFileTraits } from './traits.ts';

const folder = process.env['JSON_FILE_FOLDER'] ?? '/run/switchyard/json-file';
registerBackend({ traits: jsonFileTraits, load: async () => jsonFileBackend(folderStore(folder)) });
await runAgentProgram();
