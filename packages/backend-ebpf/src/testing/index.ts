export { hooksOf } from '../kernel/kernel.ts';
export * from './faulty-map.ts';
export * from './memory-kernel.ts';
export * from './trace-packet.ts';
export * from './step-clock.ts';
export * from './memory-backend.ts';
export { addressBytes } from '../render/settings/address-bytes.ts';
export { type BackendFaults, openFaultyBackend, withMapFaults } from './faulty-backend.ts';
