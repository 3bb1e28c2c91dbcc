export { NativeMissingError } from './addon.ts';
export * from './native-error.ts';
export * from './netlink-socket.ts';
