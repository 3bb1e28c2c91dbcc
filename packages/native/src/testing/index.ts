export * from './scripted-socket.ts';
