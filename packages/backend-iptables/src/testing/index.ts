export type { IptablesHost } from '../host.ts';
