import { folderPages } from '../sections.ts';

/** Pages that VitePress makes of `[folder].md`; `rewrites` in the configuration gives each its place. */
export default {
  paths: () => folderPages().map(({ id, content }) => ({ params: { folder: id }, content })),
};
