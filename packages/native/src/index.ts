export { NativeMissingError } from './addon.ts';
export * from './native-error.ts';
export * from './netlink-socket.ts';
export * from './netlink/message-writer.ts';
export * from './netlink/read-messages.ts';
