export * from './fake-nft.ts';
export * from './trace-packet.ts';
export * from './faulty-backend.ts';
